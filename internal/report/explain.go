package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"placer/graph"
	"placer/hw"
	"placer/internal/words"
	"placer/placer/explain"
	"placer/plan"
	"placer/units"
)

// explanationFormat names the version of Explanation as a JSON document.
const explanationFormat = "placer explanation 1"

// Explanation is why a plan's step takes what it takes. Times are whole picoseconds:
// those of layers sum to the step, and so do those of kinds.
type Explanation struct {
	Format     string          `json:"format"`
	Graph      Graph           `json:"graph"`
	Machine    Machine         `json:"machine"`
	Method     string          `json:"method"`
	Step       explain.Time    `json:"step_ps"`
	Infeasible string          `json:"infeasible,omitempty"`
	Binds      string          `json:"binds"`
	BindsShare float64         `json:"binds_share"`
	Layers     []pathPart      `json:"layers"`
	Kinds      []pathPart      `json:"kinds"`
	Devices    []explainDevice `json:"devices"`
	Links      []explainLink   `json:"links"`
	NoSlack    string          `json:"no_slack,omitempty"`
	WhatIf     []whatIf        `json:"what_if"`
}

// pathPart is a part of the critical path.
type pathPart struct {
	Name     string       `json:"name"`
	Compute  explain.Time `json:"compute_ps"`
	Transfer explain.Time `json:"transfer_ps"`
	Steps    int          `json:"steps"`
}

// explainDevice says what a device does in a step.
type explainDevice struct {
	Name    string        `json:"name"`
	Ops     int           `json:"ops"`
	Busy    explain.Time  `json:"busy_ps"`
	OnPath  explain.Time  `json:"on_path_ps"`
	CanWait *explain.Time `json:"can_wait_ps"` // null where slack is not known
	Free    int64         `json:"free_bytes"`
}

// explainLink says what a link does in a step.
type explainLink struct {
	Name   string       `json:"name"`
	Bytes  int64        `json:"bytes"`
	Busy   explain.Time `json:"busy_ps"`
	OnPath explain.Time `json:"on_path_ps"`
}

// whatIf is the step on another machine.
type whatIf struct {
	Name string       `json:"name"`
	Step explain.Time `json:"step_ps"`
	Gain explain.Time `json:"gain_ps"`
	Fits bool         `json:"fits"`
	Note string       `json:"note,omitempty"`
}

// Explain describes x, of p for g on m.
func Explain(g *graph.Graph, m *hw.Machine, p *plan.Plan, x *explain.Explanation) *Explanation {
	e := &Explanation{Format: explanationFormat, Graph: IdentifyGraph(g), Machine: IdentifyMachine(m), Method: p.Method, Step: x.Step, Binds: x.Binds, BindsShare: x.Share, NoSlack: x.NoSlack}
	if x.Infeasible != nil {
		e.Infeasible = x.Infeasible.Error()
	}
	for _, q := range x.Layers {
		e.Layers = append(e.Layers, pathPart(q))
	}
	for _, q := range x.Kinds {
		e.Kinds = append(e.Kinds, pathPart(q))
	}
	for _, d := range x.Devices {
		row := explainDevice{Name: d.Name, Ops: d.Ops, Busy: d.Busy, OnPath: d.OnPath, Free: int64(d.PeakFree)}
		if x.NoSlack == "" {
			row.CanWait = &d.CanWait
		}
		e.Devices = append(e.Devices, row)
	}
	for _, l := range x.Links {
		e.Links = append(e.Links, explainLink{l.Name, int64(l.Bytes), l.Busy, l.OnPath})
	}
	for _, w := range x.WhatIf {
		e.WhatIf = append(e.WhatIf, whatIf(w))
	}
	return e
}

// Lengths of the tables of the text form.
const (
	longestLayers = 12
	longestKinds  = 12
	longestLinks  = 6
)

// WriteText writes e: sentences first, then tables whose times sum to the step.
func (e *Explanation) WriteText(w io.Writer) error {
	pg := newPage(w)
	s := explain.ScaleOf(e.Step)
	var compute, transfer explain.Time
	for _, q := range e.Kinds {
		compute, transfer = compute+q.Compute, transfer+q.Transfer
	}
	pg.prose(fmt.Sprintf("The step takes %s %s: %.1f%% of its critical path computes, %.1f%% waits for transfers.", s.Format(e.Step), s.Unit, share100(compute, e.Step), share100(transfer, e.Step)))
	if e.Infeasible != "" {
		pg.prose("The plan does not fit: " + e.Infeasible + ".")
	}
	if e.Binds != "" {
		if e.BindsShare >= 0.5 {
			pg.prose(fmt.Sprintf("%s binds: %.1f%% of the path is on it.", e.Binds, 100*e.BindsShare))
		} else {
			pg.prose(fmt.Sprintf("No device and no link binds alone: %s has the most of the path, %.1f%%.", e.Binds, 100*e.BindsShare))
		}
	}
	if len(e.WhatIf) > 0 {
		best := e.WhatIf[0]
		if best.Gain > 0 {
			pg.prose(fmt.Sprintf("What would help most: %s, %.1f%% of the step.", best.Name, share100(best.Gain, e.Step)))
		} else {
			pg.prose("None of the other machines below would help.")
		}
	}
	pg.prosef("\n%s: %s on %s, %s; placed by %s\n", e.Graph.Name, words.Count(e.Graph.Ops, "op", "ops"), e.Machine.Name, devices(e.Machine.Devices), cmp.Or(e.Method, "unknown"))
	e.writeParts(pg, s, "layer", folded(e.Layers, longestLayers))
	e.writeParts(pg, s, "kind of op, or transfer", folded(e.Kinds, longestKinds))
	e.writeResources(pg, s)
	e.writeWhatIf(pg, s)
	return pg.err
}

func share100(a, b explain.Time) float64 { return 100 * float64(a) / float64(max(1, b)) }

// folded returns the n-1 largest of parts in their order, and the others as one.
func folded(parts []pathPart, n int) []pathPart {
	if len(parts) <= n {
		return parts
	}
	bySize := slices.Clone(parts)
	slices.SortStableFunc(bySize, func(a, b pathPart) int { return cmp.Compare(b.Compute+b.Transfer, a.Compute+a.Transfer) })
	large := map[string]bool{}
	for _, q := range bySize[:n-1] {
		large[q.Name] = true
	}
	var kept []pathPart
	rest := pathPart{Name: words.Count(len(parts)-n+1, "other", "others")}
	for _, q := range parts {
		if large[q.Name] {
			kept = append(kept, q)
			continue
		}
		rest.Compute, rest.Transfer, rest.Steps = rest.Compute+q.Compute, rest.Transfer+q.Transfer, rest.Steps+q.Steps
	}
	return append(kept, rest)
}

// writeParts writes parts of the critical path and their sum. What is printed sums to
// what is printed: times of one column are rounded together.
func (e *Explanation) writeParts(pg *page, s explain.Scale, what string, parts []pathPart) {
	pg.printf("\ncritical path by %s\n", what)
	var times []explain.Time
	for _, q := range parts {
		times = append(times, q.Compute, q.Transfer)
	}
	text := s.FormatParts(times)
	totals := s.SumParts(times, 2)
	t := newTable("part", ">ops", ">compute", ">transfer", ">"+s.Unit, ">share")
	steps := 0
	for k, q := range parts {
		t.row(clip(q.Name, 32), q.Steps, text[2*k], text[2*k+1], totals[k], percentOf(float64(q.Compute+q.Transfer)/float64(max(1, e.Step))))
		steps += q.Steps
	}
	t.row("the step", steps, "", "", s.Format(e.Step), "100.0%")
	pg.table(t)
}

// writeResources writes what devices and links do.
func (e *Explanation) writeResources(pg *page, s explain.Scale) {
	pg.printf("\n")
	t := newTable("device", ">ops", ">busy", ">on path", ">can wait", ">idle", ">free memory")
	for _, d := range e.Devices {
		wait := "-"
		if d.CanWait != nil {
			wait = fmt.Sprintf("%.0f%%", share100(*d.CanWait, d.Busy))
		}
		t.row(d.Name, d.Ops, fmt.Sprintf("%.1f%%", share100(d.Busy, e.Step)), fmt.Sprintf("%.1f%%", share100(d.OnPath, e.Step)), wait,
			s.Format(max(0, e.Step-d.Busy))+" "+s.Unit, units.Bytes(d.Free))
	}
	pg.table(t)
	if e.NoSlack != "" {
		pg.prosef("slack is not known: %s\n", e.NoSlack)
	} else {
		pg.lines("can wait: the part of its work that could end later by 1% of the step")
	}
	if len(e.Links) == 0 {
		return
	}
	pg.printf("\n")
	t = newTable("link", ">bytes", ">busy", ">on path")
	for _, l := range e.Links[:min(len(e.Links), longestLinks)] {
		t.row(l.Name, units.Bytes(l.Bytes), fmt.Sprintf("%.1f%%", share100(l.Busy, e.Step)), fmt.Sprintf("%.1f%%", share100(l.OnPath, e.Step)))
	}
	pg.table(t)
}

// writeWhatIf writes the steps on other machines.
func (e *Explanation) writeWhatIf(pg *page, s explain.Scale) {
	if len(e.WhatIf) == 0 {
		return
	}
	pg.printf("\n")
	t := newTable("what if (simulated again)", ">step, "+s.Unit, ">gain, "+s.Unit, ">of step")
	for _, r := range e.WhatIf {
		name := r.Name
		if !r.Fits {
			name += " (does not fit)"
		}
		t.row(name, s.Format(r.Step), s.Format(r.Gain), percentOf(float64(r.Gain)/float64(max(1, e.Step))))
	}
	pg.table(t)
	for _, r := range e.WhatIf {
		if r.Note != "" {
			pg.prose(r.Name + ": " + r.Note + ".")
		}
	}
}
