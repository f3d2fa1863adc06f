package web

import (
	"fmt"
	"math"
	"strings"

	"placer/internal/report"
	"placer/plan"
	"placer/units"
)

// convergence draws what every method had come to over the time of the search, or over
// evaluations where that was the budget, with the proven bound.
func convergence(s *report.Search, curves []Curve) (figure, []swatch) {
	by, name := func(p Point) float64 { return p.Seconds }, "seconds of search"
	xText := func(v float64) string { return fmt.Sprintf("%g", v) }
	if s.Budget.Seconds == 0 {
		by, name = func(p Point) float64 { return float64(p.Evaluations) }, "evaluations of the method"
	}
	c := newChart(1160, 360, "The best plan of each method over the search")
	c.right = 120
	c.x, c.y = scale{math.Inf(1), 0, true}, scale{math.Inf(1), 0, true}
	for _, curve := range curves {
		for _, p := range curve.Points {
			if v := by(p); v > 0 {
				c.x.low, c.x.high = min(c.x.low, v), max(c.x.high, v)
			}
			c.y.low, c.y.high = min(c.y.low, p.Value), max(c.y.high, p.Value)
		}
	}
	if s.LowerBound > 0 {
		c.y.low = min(c.y.low, s.LowerBound)
	}
	if math.IsInf(c.y.low, 1) {
		return figure{}, nil
	}
	if !(c.x.high > 0) {
		c.x = scale{1, 1, true}
	}
	c.x.low = max(c.x.low, c.x.high/1e4)
	c.y.low, c.y.high = c.y.low*0.95, c.y.high*1.05
	c.axes(name, "", xText, func(v float64) string { return report.Value(s.Objective, v) })
	if s.LowerBound > 0 {
		c.across(s.LowerBound, "bound", "proven bound "+report.Value(s.Objective, s.LowerBound))
	}
	var legend []swatch
	searches := 0
	for _, curve := range curves {
		if len(curve.Points) == 0 {
			continue
		}
		last := curve.Points[len(curve.Points)-1]
		title := fmt.Sprintf("%s: %s", curve.Method, report.Value(s.Objective, last.Value))
		if curve.Kind == plan.Baseline { // a moment each
			c.dot("f0", title, max(by(last), c.x.low), last.Value)
			continue
		}
		searches++
		k := 1 + (searches-1)%colours
		var xs, ys []float64
		for _, p := range curve.Points {
			xs, ys = append(xs, max(by(p), c.x.low)), append(ys, p.Value)
		}
		c.line(fmt.Sprintf("s%d", k), title, xs, ys, true)
		c.dot(fmt.Sprintf("f%d", k), title, xs[len(xs)-1], ys[len(ys)-1])
		legend = append(legend, swatch{fmt.Sprintf("f%d", k), title})
	}
	legend = append(legend, swatch{"f0", "a dot each: rules of thumb, partitioners and list schedulers"})
	return figure{SVG: c.done(), Caption: "Both axes are logarithmic. A line begins with a method's first plan and steps down with each better one; points at which it was not yet better are not drawn."}, legend
}

// memoryFigure draws the memory of each device over the step below its limit.
func memoryFigure(x *Plan) figure {
	const bins = 400
	c := newChart(1160, 260, "Memory of each device over the step, and its limit")
	c.right = 120
	c.x, c.y = scale{0, float64(x.Result.Makespan), false}, scale{0, 0, false}
	for d := range x.Result.Trace.Memory {
		c.y.high = max(c.y.high, float64(x.Result.PeakBytes[d]), float64(x.Machine.Devices[d].Memory))
	}
	c.y.high *= 1.08
	c.axes("time", "", func(v float64) string { return units.Seconds(v).String() }, func(v float64) string { return units.Bytes(v).String() })
	limits := map[units.Bytes][]string{}
	var order []units.Bytes
	for d, samples := range x.Result.Trace.Memory {
		m := x.Machine.Devices[d].Memory
		if limits[m] == nil {
			order = append(order, m)
		}
		limits[m] = append(limits[m], x.Machine.Devices[d].Name)
		if len(samples) == 0 || x.Result.Makespan <= 0 {
			continue
		}
		peak := make([]float64, bins) // the largest within each bin
		k, held := 0, 0.0
		for b := range peak {
			end := float64(x.Result.Makespan) * float64(b+1) / bins
			peak[b] = held
			for ; k < len(samples) && (float64(samples[k].At) < end || b == bins-1); k++ {
				held = float64(samples[k].Bytes)
				peak[b] = max(peak[b], held)
			}
		}
		var xs, ys []float64
		for b, v := range peak {
			xs, ys = append(xs, float64(x.Result.Makespan)*float64(b)/bins), append(ys, v)
		}
		c.line(fmt.Sprintf("s%d", 1+d%colours), fmt.Sprintf("%s: at most %s", x.Machine.Devices[d].Name, x.Result.PeakBytes[d]), xs, ys, true)
	}
	for _, m := range order {
		name := "limit " + m.String()
		if len(order) > 1 {
			name = strings.Join(limits[m], ", ") + ": " + name
		}
		c.across(float64(m), "limit", name)
	}
	return figure{Title: x.Title, SVG: c.done()}
}

// deviceLegend lists the colours of the devices in memoryFigure.
func deviceLegend(x *Plan) (all []swatch) {
	for d := range x.Machine.Devices {
		peak := ""
		if d < len(x.Result.PeakBytes) {
			peak = ", peak " + x.Result.PeakBytes[d].String()
		}
		all = append(all, swatch{fmt.Sprintf("f%d", 1+d%colours), x.Machine.Devices[d].Name + peak})
	}
	return all
}
