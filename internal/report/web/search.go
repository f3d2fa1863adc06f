package web

import (
	"fmt"
	"io"

	"placer/internal/report"
	"placer/internal/words"
	"placer/plan"
	"placer/units"
)

// WriteSearch writes the page of a search and its best plan; x.Search is not nil.
func WriteSearch(w io.Writer, x *Plan) error {
	s := x.Search
	p := &page{Title: fmt.Sprintf("%s on %s, %s", s.Graph.Name, s.Machine.Name, deviceCount(s.Machine.Devices)), Verdict: verdict(s, x.devicesUsed())}
	p.Facts = searchFacts(s)
	step, err := x.timeline("timeline")
	if err != nil {
		return err
	}
	by := findGroups(x.Graph)
	timeline := section{
		ID: "step", Title: "One step on its time axis", Timelines: []timeline{step}, Legend: by.legend(),
		Text: []string{fmt.Sprintf("A row for each device with its memory below it, then a row for each link that carries something. Pale is the forward pass. The times are those of the simulator for the plan of %s.", s.Best.Method)},
	}
	if s.Evaluator != "" {
		timeline.Notes = append(timeline.Notes, fmt.Sprintf("Step times of this search are measured; the step that is drawn is the simulator's, which says %s.", x.Result.Makespan))
	}
	p.Sections = append(p.Sections, timeline)
	if x.Result.PeakBytes != nil {
		p.Sections = append(p.Sections, section{ID: "memory", Title: "Memory over the step", Figures: []figure{memoryFigure(x)}, Legend: deviceLegend(x), Notes: infeasible(x.Simulation)})
	}
	p.Sections = append(p.Sections, section{ID: "layers", Title: "Placement by " + by.word, Heats: []heat{newHeat(x, by)}})
	if chart, legend := convergence(s, x.Curves); chart.SVG != nil {
		p.Sections = append(p.Sections, section{ID: "convergence", Title: "Convergence", Figures: []figure{chart}, Legend: legend})
	}
	p.Sections = append(p.Sections,
		section{ID: "methods", Title: "Methods", Tables: []tableView{methodsTable(s)}, Notes: append(x.Notes, methodNotes(s)...)},
		section{ID: "devices", Title: "Devices and links", Tables: []tableView{
			{"what each device does in the step", x.Simulation.DeviceCells(), -1}, {"what each link carries in the step", x.Simulation.LinkCells(), -1}}})
	p.Footer = searchFooter(s)
	return p.write(w)
}

// WriteComparedPlans writes the page of two plans on one time axis.
func WriteComparedPlans(w io.Writer, a, b *Plan) error {
	p := &page{Title: fmt.Sprintf("%s and %s", a.Title, b.Title), Verdict: compared(a, b)}
	both := section{ID: "step", Title: "Both steps on one time axis", Text: []string{"A row for each device with its memory below it, then a row for each link that carries something. Pale is the forward pass. Both move together."}}
	memory := section{ID: "memory", Title: "Memory over the step"}
	layers := section{ID: "layers", Title: "Placement"}
	tables := section{ID: "devices", Title: "Devices and links"}
	for k, x := range []*Plan{a, b} {
		t, err := x.timeline(fmt.Sprintf("timeline-%d", k+1))
		if err != nil {
			return err
		}
		t.Title = fmt.Sprintf("%s: %s", x.Title, x.Result.Makespan)
		both.Timelines = append(both.Timelines, t)
		by := findGroups(x.Graph)
		if k == 0 || a.Graph.Hash() != b.Graph.Hash() {
			both.Legend = append(both.Legend, by.legend()...)
		}
		if x.Result.PeakBytes != nil {
			memory.Figures = append(memory.Figures, memoryFigure(x))
		}
		layers.Heats = append(layers.Heats, newHeat(x, by))
		tables.Tables = append(tables.Tables, tableView{x.Title + ": what each device does in the step", x.Simulation.DeviceCells(), -1},
			tableView{x.Title + ": what each link carries in the step", x.Simulation.LinkCells(), -1})
		p.Facts = append(p.Facts, fact{x.Title, x.Result.Makespan.String(), fmt.Sprintf("%s on %s", x.Simulation.Method, deviceCount(x.Machine.NumDevices()))})
		memory.Notes = append(memory.Notes, infeasible(x.Simulation)...)
	}
	p.Sections = append(p.Sections, both)
	if len(memory.Figures) > 0 {
		p.Sections = append(p.Sections, memory)
	}
	p.Sections = append(p.Sections, layers, tables)
	p.Footer = "Times are the simulator's."
	return p.write(w)
}

// timeline returns the timeline of x with its data.
func (x *Plan) timeline(id string) (timeline, error) {
	data := newPayload(x, findGroups(x.Graph), x.Search)
	data.join(mostSpans)
	text, err := data.text()
	return timeline{ID: id, Payload: text}, err
}

// infeasible says why a plan does not fit.
func infeasible(s *report.Simulation) []string {
	if s.Feasible {
		return nil
	}
	return []string{"The plan does not fit: " + s.Infeasible}
}

// devicesUsed counts the devices that run something.
func (x *Plan) devicesUsed() (n int) {
	for _, d := range x.Simulation.Devices {
		if d.Ops > 0 {
			n++
		}
	}
	return n
}

// methodNotes are what the table of methods leaves out, and what the inputs left open.
func methodNotes(s *report.Search) []string {
	notes := s.Notes()
	for _, a := range s.Assumptions {
		notes = append(notes, "assumed: "+a)
	}
	return notes
}

// searchFacts are the figures at the head of the page.
func searchFacts(s *report.Search) []fact {
	value, name := func(x float64) string { return report.Value(s.Objective, x) }, "step time"
	if o := s.Objective.Normal(); o != plan.Step {
		name = string(o)
	}
	facts := []fact{{name, value(objective(&s.Best)), "by " + s.Best.Method}, {"proven lower bound", value(s.LowerBound), ""}}
	if s.Best.Gap != nil {
		facts = append(facts, fact{"above the bound", fmt.Sprintf("%.1f%%", 100**s.Best.Gap), "at most"})
	}
	if s.Best.Reduction != nil {
		facts = append(facts, fact{"against the expert", fmt.Sprintf("%+.1f%%", -100**s.Best.Reduction), ""})
	}
	if len(s.Best.Peak) > 0 {
		peak := int64(0)
		for _, b := range s.Best.Peak {
			peak = max(peak, b)
		}
		facts = append(facts, fact{"fullest device", units.Bytes(peak).String(), ""})
	}
	return append(facts, fact{"graph", words.Count(s.Graph.Ops, "op", "ops"), words.Count(s.Graph.Edges, "edge", "edges")})
}

// methodsTable is the table that the search prints, with the best row marked.
func methodsTable(s *report.Search) tableView {
	t := tableView{Caption: "what each method came to, under one simulator; * is the best", Cells: s.Cells(), Mark: -1}
	for i := range s.Rows {
		if s.Rows[i].Method == s.Best.Method {
			t.Mark = i
		}
	}
	return t
}

// searchFooter says how the search was asked for.
func searchFooter(s *report.Search) string {
	text := fmt.Sprintf("%s in %.1f s, seed %d, %s scheduler, decisions by %s", words.Count(s.Evaluations, "evaluation", "evaluations"), s.Seconds, s.Seed, s.Scheduler, s.Granularity)
	if s.Tasks != "" {
		text += ", tasks " + s.Tasks
	}
	if s.Interrupted {
		text += "; interrupted"
	}
	return text + fmt.Sprintf(". Graph %.12s, machine %.12s.", s.Graph.Hash, s.Machine.Hash)
}
