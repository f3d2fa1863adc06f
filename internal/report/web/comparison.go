package web

import (
	"fmt"
	"io"
	"math"

	"maragu.dev/gomponents"

	"placer/internal/compare"
	"placer/internal/report"
	"placer/internal/words"
)

// WriteComparison writes the page of a comparison: for each case a chart of medians with
// their intervals, then wins and losses.
func WriteComparison(w io.Writer, c *compare.Comparison) error {
	rows, totals, notes := report.ComparisonCells(c)
	p := &page{
		Title:   fmt.Sprintf("%s on %s", words.Count(len(c.Matrix.Methods), "method", "methods"), words.Count(len(c.Matrix.Cases), "case", "cases")),
		Verdict: []string{leader(c)},
		Footer:  report.DescribeComparison(c) + ".",
	}
	medians := section{ID: "medians", Title: "Medians with their intervals", Text: []string{
		fmt.Sprintf("A chart for each case, a row for each method. The dot is the median, the bar its interval of at least 95%%, the tick the best trial; the dashed line is the median of %s, the axis logarithmic. Further left is better.", c.Matrix.Against)}}
	for _, x := range c.Matrix.Cases {
		medians.Figures = append(medians.Figures, caseChart(c, x.Name()))
	}
	p.Sections = []section{
		medians,
		{ID: "wins", Title: "Wins and losses", Figures: []figure{{SVG: winsChart(c), Caption: "seeds on cases won, tied within 0.1%, and lost against " + c.Matrix.Against + "; where neither has a placement nothing counts"}},
			Legend: []swatch{{"f3", "win"}, {"f0", "tie"}, {"f9", "loss"}}, Tables: []tableView{{"over all cases", totals, -1}}},
		{ID: "rows", Title: "Every case", Tables: []tableView{{"medians over seeds", rows, -1}}, Notes: notes},
	}
	return p.write(w)
}

// leader says which of the methods that have a placement on every case has the largest
// reduction over the cases on which the reference has one.
func leader(c *compare.Comparison) string {
	best, compared := -1, 0
	for _, t := range c.Totals {
		if t.Method == c.Matrix.Against {
			compared = t.Cases
		}
	}
	for i, t := range c.Totals {
		if t.Reduction != nil && t.Failed == 0 && t.Cases == compared && (best < 0 || *t.Reduction > *c.Totals[best].Reduction) {
			best = i
		}
	}
	over := "all cases"
	if n := len(c.Matrix.Cases); compared < n {
		over = fmt.Sprintf("the %d of %s on which %s has a placement", compared, words.Count(n, "case", "cases"), c.Matrix.Against)
	}
	switch {
	case compared == 0:
		return fmt.Sprintf("%s, against which the others are measured, has a placement on no case.", c.Matrix.Against)
	case best < 0 && c.Interrupted:
		return "Trials are missing: no method has a placement on every case yet."
	case best < 0:
		return "No method has a placement on every case."
	}
	t := c.Totals[best]
	if t.Method == c.Matrix.Against {
		return fmt.Sprintf("No method is better than %s over %s.", t.Method, over)
	}
	share, word := 100**t.Reduction, "shorter"
	if share < 0 {
		share, word = -share, "longer"
	}
	return fmt.Sprintf("Over %s %s comes out best: %.1f%% %s than %s in the geometric mean of medians; it wins %d, ties %d and loses %d.",
		over, t.Method, share, word, c.Matrix.Against, t.Wins, t.Ties, t.Losses)
}

const rowHeight = 22

// caseChart draws the methods on one case.
func caseChart(c *compare.Comparison, name string) figure {
	value := func(v float64) string { return report.Value(c.Matrix.Objective, v) }
	n := 0
	x := scale{math.Inf(1), 0, true}
	for _, r := range c.Rows {
		if r.Case != name {
			continue
		}
		n++
		for _, v := range []*float64{r.Median, r.Low, r.High, r.Best} {
			if v != nil && *v > 0 {
				x.low, x.high = min(x.low, *v), max(x.high, *v)
			}
		}
	}
	g := newChart(560, float64(n*rowHeight)+50, "Median of each method on "+name)
	g.left, g.right, g.top, g.bottom = 110, 90, 6, 40
	g.x, g.y = scale{x.low * 0.97, x.high * 1.03, true}, scale{}
	if math.IsInf(x.low, 1) {
		g.text("", 4, 20, "start", "no method has a placement")
		return figure{Title: name, SVG: g.done()}
	}
	base := g.height - g.bottom
	for _, t := range g.x.ticks(5) {
		g.printf(`<path class="grid" d="M%.1f %.1fV%.1f"/>`, g.px(t), g.top, base)
		g.text("", g.px(t), base+16, "middle", value(t))
	}
	k, colour := 0, 0
	for i := range c.Rows {
		r := &c.Rows[i]
		colour = methodIndex(c, r.Method)
		if r.Case != name {
			continue
		}
		y := g.top + rowHeight*(float64(k)+0.5)
		k++
		g.text("strong", g.left-8, y+4, "end", r.Method)
		if r.Median == nil {
			g.text("", g.left+4, y+4, "start", c.WhyNone(i))
			continue
		}
		if r.Method == c.Matrix.Against {
			g.printf(`<path class="bound" d="M%.1f %.1fV%.1f"/>`, g.px(*r.Median), g.top, base)
		}
		class := 1 + colour%colours
		if r.Low != nil && r.High != nil {
			g.printf(`<path class="bar s%d" d="M%.1f %.1fH%.1f"><title>%s to %s</title></path>`, class, g.px(*r.Low), y, max(g.px(*r.High), g.px(*r.Low)+1), value(*r.Low), value(*r.High))
		}
		if r.Best != nil {
			g.printf(`<path class="curve s%d" d="M%.1f %.1fv10"/>`, class, g.px(*r.Best), y-5)
		}
		g.printf(`<circle class="f%d" cx="%.1f" cy="%.1f" r="4"><title>median %s</title></circle>`, class, g.px(*r.Median), y, value(*r.Median))
		g.text("", g.width-4, y+4, "end", value(*r.Median))
	}
	return figure{Title: name, SVG: g.done()}
}

// methodIndex returns the place of a method in the matrix.
func methodIndex(c *compare.Comparison, method string) int {
	for i, m := range c.Matrix.Methods {
		if m == method {
			return i
		}
	}
	return 0
}

// winsChart draws a row of wins, ties and losses for each method.
func winsChart(c *compare.Comparison) gomponents.Node {
	g := newChart(700, float64(len(c.Totals)*rowHeight)+12, "Wins, ties and losses of each method against "+c.Matrix.Against)
	g.left, g.right = 110, 130
	for k, t := range c.Totals {
		y := 6 + float64(k*rowHeight)
		g.text("strong", g.left-8, y+15, "end", t.Method)
		all := float64(max(1, t.Wins+t.Ties+t.Losses))
		at := g.left
		for _, part := range []struct{ class, n int }{{3, t.Wins}, {0, t.Ties}, {9, t.Losses}} {
			width := float64(part.n) / all * (g.width - g.left - g.right)
			g.printf(`<rect class="f%d" x="%.1f" y="%.1f" width="%.1f" height="16"/>`, part.class, at, y+2, width)
			at += width
		}
		g.text("", g.width-4, y+15, "end", fmt.Sprintf("%d won, %d tied, %d lost", t.Wins, t.Ties, t.Losses))
	}
	return g.done()
}
