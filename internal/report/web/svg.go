package web

import (
	"bytes"
	"fmt"
	"html"
	"math"

	"maragu.dev/gomponents"
)

// chart draws one chart as SVG in the colours of the style sheet.
type chart struct {
	b             bytes.Buffer
	width, height float64
	left, right   float64 // margins
	top, bottom   float64
	x, y          scale
}

// scale maps values to the unit interval.
type scale struct {
	low, high float64
	log       bool
}

func (s scale) at(v float64) float64 {
	if s.high <= s.low {
		return 0.5
	}
	if s.log {
		return (math.Log(v) - math.Log(s.low)) / (math.Log(s.high) - math.Log(s.low))
	}
	return (v - s.low) / (s.high - s.low)
}

// ticks returns round values within the scale, about n of them.
func (s scale) ticks(n int) (at []float64) {
	if s.high <= s.low {
		return []float64{s.low}
	}
	if s.log {
		decades := math.Log10(s.high / s.low)
		steps := []float64{1, 2, 5}
		switch {
		case decades > float64(n):
			steps = []float64{1}
		case decades < 0.6:
			return scale{low: s.low, high: s.high}.ticks(n)
		}
		for e := math.Floor(math.Log10(s.low)); e <= math.Ceil(math.Log10(s.high)); e++ {
			for _, k := range steps {
				if v := k * math.Pow(10, e); v >= s.low*(1-1e-9) && v <= s.high*(1+1e-9) {
					at = append(at, v)
				}
			}
		}
		return at
	}
	raw := (s.high - s.low) / float64(n)
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, k := range []float64{1, 2, 5, 10} {
		if k*step >= raw {
			step *= k
			break
		}
	}
	for k := math.Ceil(s.low/step-1e-9) + 0; k*step <= s.high*(1+1e-9); k++ {
		at = append(at, k*step+0) // 0 in place of -0
	}
	return at
}

// newChart begins a chart that title describes to those who do not see it.
func newChart(width, height float64, title string) *chart {
	c := &chart{width: width, height: height, left: 70, right: 14, top: 10, bottom: 40}
	c.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" viewBox="0 0 %g %g" role="img" aria-label="%s">`, width, height, width, height, html.EscapeString(title))
	return c
}

func (c *chart) printf(format string, a ...any) { fmt.Fprintf(&c.b, format+"\n", a...) }

func (c *chart) px(v float64) float64 {
	return c.left + min(1, max(0, c.x.at(v)))*(c.width-c.left-c.right)
}

func (c *chart) py(v float64) float64 {
	return c.height - c.bottom - min(1, max(0, c.y.at(v)))*(c.height-c.top-c.bottom)
}

// axes draws both axes with ticks, labelled as the functions print values.
func (c *chart) axes(xName, yName string, xText, yText func(float64) string) {
	c.printf(`<path class="axis" d="M%.1f %.1fV%.1fH%.1f"/>`, c.left, c.top, c.height-c.bottom, c.width-c.right)
	for _, v := range c.y.ticks(5) {
		c.printf(`<path class="grid" d="M%.1f %.1fH%.1f"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`, c.left, c.py(v), c.width-c.right, c.left-6, c.py(v)+4, html.EscapeString(yText(v)))
	}
	last := math.Inf(-1)
	for _, v := range c.x.ticks(int((c.width - c.left - c.right) / 90)) {
		text := xText(v)
		room := 3.2 * float64(len(text))
		if c.px(v)-room < last {
			continue
		}
		last = c.px(v) + room + 6
		c.printf(`<path class="axis" d="M%.1f %.1fv4"/><text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, c.px(v), c.height-c.bottom, c.px(v), c.height-c.bottom+17, html.EscapeString(text))
	}
	c.printf(`<text x="%.1f" y="%.1f" text-anchor="end">%s</text>`, c.width-c.right, c.height-4, html.EscapeString(xName))
	if yName != "" {
		c.printf(`<text x="4" y="%.1f">%s</text>`, c.height-4, html.EscapeString(yName))
	}
}

// across draws a level line of a class with its name at its end.
func (c *chart) across(v float64, class, name string) {
	c.printf(`<path class="%s" d="M%.1f %.1fH%.1f"/><text class="strong" x="%.1f" y="%.1f" text-anchor="end">%s</text>`, class, c.left, c.py(v), c.width-c.right, c.width-c.right, c.py(v)-4, html.EscapeString(name))
}

// line draws points as a line, in steps where step is set, with a title for the pointer.
func (c *chart) line(class, title string, xs, ys []float64, step bool) {
	c.printf(`<path class="curve %s" d="`, class)
	for i := range xs {
		switch {
		case i == 0:
			c.printf(`M%.1f %.1f`, c.px(xs[i]), c.py(ys[i]))
		case step:
			c.printf(`H%.1fV%.1f`, c.px(xs[i]), c.py(ys[i]))
		default:
			c.printf(`L%.1f %.1f`, c.px(xs[i]), c.py(ys[i]))
		}
	}
	c.printf(`"><title>%s</title></path>`, html.EscapeString(title))
}

// dot draws a point with a title for the pointer.
func (c *chart) dot(class, title string, x, y float64) {
	c.printf(`<circle class="%s" cx="%.1f" cy="%.1f" r="3"><title>%s</title></circle>`, class, c.px(x), c.py(y), html.EscapeString(title))
}

// text writes at a point of the chart, in pixels.
func (c *chart) text(class string, x, y float64, anchor, text string) {
	c.printf(`<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>`, class, x, y, anchor, html.EscapeString(text))
}

// done ends the chart.
func (c *chart) done() gomponents.Node {
	c.printf(`</svg>`)
	return gomponents.Raw(c.b.String()) // every text in it was escaped
}
