package main

import (
	"bytes"
	"fmt"
	"io"

	"placer/graph"
	"placer/units"
)

// theme is a set of colours.
type theme struct {
	name             string
	text, faint, row string
	layers           []string // by layer; those after the last begin again
}

// themes returns one for light and one for dark pages. The colours of the layers
// differ in lightness too, so that they can be told apart without colour.
func themes() []theme {
	return []theme{
		{name: "light", text: "#1f2328", faint: "#59636e", row: "#eef1f4", layers: []string{"#8c959f", "#0b5394", "#e69138", "#2e7d5b", "#a64d79", "#6f42c1"}},
		{name: "dark", text: "#e6edf3", faint: "#9198a1", row: "#1c2128", layers: []string{"#6e7681", "#58a6ff", "#f0b072", "#56c596", "#e38fb9", "#b392f0"}},
	}
}

// Measures of the picture, in pixels.
const (
	width, left, right = 860, 52, 64
	rowHeight, gap     = 20, 4
	titleHeight        = 34
	legendHeight       = 40
	axisHeight         = 26
)

// write draws the steps below each other, on the axis of the longest.
func write(w io.Writer, th theme, steps []step, bound units.Seconds) error {
	var longest units.Seconds
	devices := 0
	layers := int32(0)
	for _, s := range steps {
		longest, devices = max(longest, s.makespan), max(devices, len(s.boxes))
		for _, row := range s.boxes {
			for _, b := range row {
				layers = max(layers, b.layer)
			}
		}
	}
	panel := titleHeight + devices*(rowHeight+gap)
	height := len(steps)*panel + axisHeight + legendHeight
	x := func(t units.Seconds) float64 { return left + float64(t/longest)*(width-left-right) }

	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="13" role="img">`, width, height, width, height)
	p(`<title>One training step of a four-layer Transformer-XL on four GPUs: %s as a human expert places it, %s as placer does.</title>`, steps[0].makespan, steps[1].makespan)
	for k, s := range steps {
		top := k * panel
		p(`<text x="%d" y="%d" fill="%s" font-weight="600">%s</text>`, left, top+22, th.text, s.title)
		for d, row := range s.boxes {
			y := top + titleHeight + d*(rowHeight+gap)
			p(`<text x="%d" y="%d" fill="%s" text-anchor="end">GPU %d</text>`, left-8, y+15, th.faint, d)
			p(`<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, left, y, x(s.makespan)-left, rowHeight, th.row)
			for _, o := range row {
				p(`<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"%s/>`, x(o.start), y, max(x(o.end)-x(o.start), 0.3), rowHeight, th.layers[int(o.layer)%len(th.layers)], opacity(o.phase))
			}
		}
		bottom := top + panel - gap
		p(`<text x="%.1f" y="%d" fill="%s" font-weight="600">%s</text>`, x(s.makespan)+6, top+titleHeight+devices*(rowHeight+gap)/2+3, th.text, s.makespan)
		p(`<path d="M%.1f %dV%d" stroke="%s" stroke-dasharray="3 3"/>`, x(bound), top+titleHeight-4, bottom+4, th.text)
	}
	y := len(steps) * panel
	for t := units.Seconds(0); t <= longest; t += 0.05 {
		p(`<path d="M%.1f %dv5" stroke="%s"/><text x="%.1f" y="%d" fill="%s" font-size="12" text-anchor="middle">%d ms</text>`, x(t), y, th.faint, x(t), y+18, th.faint, int(t*1000+0.5))
	}
	y += axisHeight + 10
	at := left
	for layer := int32(1); layer <= layers; layer++ {
		p(`<rect x="%d" y="%d" width="12" height="12" fill="%s"/><text x="%d" y="%d" fill="%s">layer %d</text>`, at, y, th.layers[int(layer)%len(th.layers)], at+17, y+11, th.faint, layer)
		at += 78
	}
	p(`<text x="%d" y="%d" fill="%s">pale: forward. dashed: proven lower bound, %s</text>`, at+8, y+11, th.faint, bound)
	p(`</svg>`)
	_, err := w.Write(b.Bytes())
	return err
}

// opacity tells the forward pass from the rest.
func opacity(p graph.Phase) string {
	if p == graph.Forward {
		return ` fill-opacity="0.5"`
	}
	return ""
}
