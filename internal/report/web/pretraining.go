package web

import (
	"fmt"
	"io"

	"placer/internal/tfevents"
	"placer/internal/words"
)

// WritePretraining writes the page of a pretraining run's numbers: a chart for each tag.
func WritePretraining(w io.Writer, name string, records []tfevents.Record) error {
	var tags []string
	of := map[string][]tfevents.Record{}
	for _, r := range records {
		if of[r.Tag] == nil {
			tags = append(tags, r.Tag)
		}
		of[r.Tag] = append(of[r.Tag], r)
	}
	p := &page{Title: "Pretraining " + name, Verdict: []string{fmt.Sprintf("%s of %s.", words.Count(len(records), "number", "numbers"), words.Count(len(tags), "kind", "kinds"))}}
	charts := section{ID: "course", Title: "Course of the training", Text: []string{"Dots are steps, of which each may be of another graph; the line is their exponential mean over 50 steps."}}
	for _, tag := range tags {
		charts.Figures = append(charts.Figures, course(tag, of[tag]))
	}
	p.Sections = []section{charts}
	p.Footer = "The numbers are those of the folder's event files."
	return p.write(w)
}

// mostDots bounds the dots of a chart: of more, every so manieth is drawn.
const mostDots = 1200

// course draws one number over the steps.
func course(tag string, records []tfevents.Record) figure {
	g := newChart(560, 240, tag+" over the steps")
	first := records[0]
	g.x, g.y = scale{float64(first.Step), float64(first.Step), false}, scale{first.Value, first.Value, false}
	for _, r := range records {
		g.x.low, g.x.high = min(g.x.low, float64(r.Step)), max(g.x.high, float64(r.Step))
		g.y.low, g.y.high = min(g.y.low, r.Value), max(g.y.high, r.Value)
	}
	plain := func(v float64) string { return fmt.Sprintf("%.4g", v) }
	g.axes("step", "", plain, plain)
	every := 1 + len(records)/mostDots
	var xs, ys []float64
	mean, weight := 0.0, 0.0
	for i, r := range records {
		const keep = 1 - 1.0/50
		mean, weight = keep*mean+(1-keep)*r.Value, keep*weight+(1-keep)
		if i%every != 0 && i != len(records)-1 {
			continue
		}
		xs, ys = append(xs, float64(r.Step)), append(ys, mean/weight)
		g.printf(`<circle class="f0" fill-opacity="0.4" cx="%.1f" cy="%.1f" r="1.6"/>`, g.px(float64(r.Step)), g.py(r.Value))
	}
	last := records[len(records)-1]
	g.line("s1", fmt.Sprintf("%s: %.4g at step %d", tag, last.Value, last.Step), xs, ys, false)
	return figure{Title: tag, SVG: g.done(), Caption: fmt.Sprintf("%s; the mean ends at %.4g", words.Count(len(records), "step", "steps"), ys[len(ys)-1])}
}
