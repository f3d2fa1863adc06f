package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"placer/internal/words"
	"placer/plan"
	"placer/units"
)

// SearchFormat names the version of Search as a JSON document.
const SearchFormat = "placer search 1"

// Search is the result of a search.
type Search struct {
	Format      string  `json:"format"`
	Graph       Graph   `json:"graph"`
	Machine     Machine `json:"machine"`
	Budget      Budget  `json:"budget"`
	Seed        uint64  `json:"seed"`
	Granularity string  `json:"granularity"` // at which the policy decides
	Scheduler   string  `json:"scheduler"`
	// Objective is what rows are judged by; the step time where it is empty.
	Objective plan.Objective `json:"objective,omitempty"`
	// Tasks lists what methods may decide on; place alone where it is empty.
	Tasks string `json:"tasks,omitempty"`
	// LowerBound is proven: no placement of the graph on the machine, in any order,
	// is faster, or better by the objective, in its unit.
	LowerBound float64 `json:"lower_bound_s"`
	// UnfusedBound is that of plans without fusion, where fusion is decided.
	UnfusedBound float64 `json:"lower_bound_unfused_s,omitempty"`
	// Robust says what the step times are where they are not those of the machine as it is.
	Robust *Robust `json:"robust,omitempty"`
	// Evaluator is what policies learned from; the simulator where it is empty. With
	// another one, step times are measured.
	Evaluator string `json:"evaluator,omitempty"`
	// OneDevice and BestRule are what the best plan is held against, under the same tasks:
	// the best plan on one device, the best rule or list scheduler, and the best of the plans
	// that the search was given.
	OneDevice *Reference `json:"one_device,omitempty"`
	BestRule  *Reference `json:"best_rule,omitempty"`
	Given     *Reference `json:"given,omitempty"`
	// Assumptions are remarks on the inputs: what they left open and what was taken.
	Assumptions []string  `json:"assumptions,omitempty"`
	Measured    *Measured `json:"measured,omitempty"`
	Best        Row       `json:"best"`
	Rows        []Row     `json:"rows"`
	Skipped     []Skip    `json:"skipped"`
	// Divided are the ways to divide the batch of Batch samples among the devices instead,
	// where they were asked for; DividedBest names the best that fits.
	Divided     []strategyRow `json:"divided,omitempty"`
	DividedBest string        `json:"divided_best,omitempty"`
	Batch       int64         `json:"batch,omitempty"`
	// Restricted is the best plan found that one program takes, where one was named.
	Restricted  *Restricted `json:"restricted,omitempty"`
	Seconds     float64     `json:"seconds"`
	Evaluations int         `json:"evaluations"`
	// OnFewer counts the evaluations of searches on fewer GPUs, which Evaluations does not.
	OnFewer int `json:"evaluations_on_fewer_gpus,omitempty"`
	// FirstFeasible is null where no placement fits.
	FirstFeasible *float64 `json:"first_feasible_s"`
	Interrupted   bool     `json:"interrupted"`
}

// Robust says over how many machines, which deviate by so much, step times are which quantile.
type Robust struct {
	Machines int     `json:"machines"`
	Error    float64 `json:"model_error"`
	Quantile float64 `json:"quantile"`
}

func (r *Robust) String() string {
	return fmt.Sprintf("p%.4g over %d machines that deviate by %.1f%%", 100*r.Quantile, r.Machines, 100*r.Error)
}

// Reference is a plan that the best one is held against.
type Reference struct {
	Method    string  `json:"method"`
	Value     float64 `json:"value"` // of the objective
	Feasible  bool    `json:"feasible"`
	Fused     bool    `json:"fused"`     // its ops share kernels
	Reduction float64 `json:"reduction"` // of the best plan against it
}

// Restricted is the best plan found of the form that a program takes.
type Restricted struct {
	Program     string  `json:"program"`
	Value       float64 `json:"value"` // of the objective, under list scheduling, unfused
	Feasible    bool    `json:"feasible"`
	Missing     int64   `json:"missing_bytes"` // that the plan has too few of; 0 where it fits
	Evaluations int     `json:"evaluations"`
}

// Measured says what a search measured, and how.
type Measured struct {
	Placements  int    `json:"placements"`    // run
	OutOfMemory int    `json:"out_of_memory"` // of those
	Known       int    `json:"known"`         // taken from earlier measurements
	Failed      int    `json:"failed"`        // could not be measured
	Host        string `json:"host"`          // driver, libraries and GPUs
	Mode        string `json:"mode"`          // eager or graph
	Runtime     string `json:"runtime,omitempty"`
	Clock       string `json:"clock,omitempty"` // of runtime torch; processor time where empty
	Repeats     int    `json:"repeats"`         // timed steps, of which the median counts; torch: of each of two rounds, of which the least counts
	Logical     bool   `json:"logical,omitempty"`
	Partition   bool   `json:"partition,omitempty"`
	Best        int    `json:"best_of_round,omitempty"` // samples of a round that are measured; 0: all
}

// Graph identifies a graph.
type Graph struct {
	Name  string `json:"name"`
	Ops   int    `json:"ops"`
	Edges int    `json:"edges"`
	Hash  string `json:"hash"`
}

// Machine identifies a machine.
type Machine struct {
	Name    string `json:"name"`
	Devices int    `json:"devices"`
	Hash    string `json:"hash"`
}

// Budget is what bounded a search; 0 does not bound.
type Budget struct {
	Seconds     float64 `json:"seconds"`
	Evaluations int     `json:"evaluations"`
}

// Row is the result of one method.
type Row struct {
	Method   string    `json:"method"`
	Kind     plan.Kind `json:"kind"`
	StepTime float64   `json:"step_time_s"`
	// Predicted is the simulator's step time where StepTime is measured; Unmeasured
	// says why StepTime is the simulator's all the same.
	Predicted  *float64 `json:"predicted_step_time_s,omitempty"`
	Unmeasured string   `json:"unmeasured,omitempty"`
	// Value is the objective's, where that is not the step time: the largest load in
	// seconds, or the largest peak in bytes.
	Value *float64 `json:"objective_value,omitempty"`
	// FIFO is the step time of the same devices without priorities.
	FIFO float64 `json:"fifo_step_time_s"`
	// Placed is the step time of the same devices under the search's scheduler
	// without fusion, Scheduled that with the row's own priorities: from Placed over
	// Scheduled to StepTime each task gives its part. Nil where there is place alone.
	Placed    *float64 `json:"placed_step_time_s,omitempty"`
	Scheduled *float64 `json:"scheduled_step_time_s,omitempty"`
	// Reduction is the share by which the step is shorter than the human expert's
	// under the same scheduler; null without a human row, and for what does not
	// fit.
	Reduction *float64 `json:"reduction_vs_human"`
	// OverOneDevice is the share by which the step is shorter than that of the best plan
	// on one device under the same tasks; null where none fits, and for what does not.
	OverOneDevice *float64 `json:"reduction_vs_one_device,omitempty"`
	Feasible      bool     `json:"feasible"`
	Overflow      int64    `json:"overflow_bytes"` // summed over devices
	Peak          []int64  `json:"peak_bytes"`     // [D]
	LowerBound    float64  `json:"lower_bound_s"`
	// Gap is the step time over the bound, less 1; null for what does not fit: the
	// bound is that of plans that do.
	Gap         *float64 `json:"gap"`
	Evaluations int      `json:"evaluations"`
	CPUSeconds  float64  `json:"cpu_seconds"`
	Notes       []string `json:"notes,omitempty"`
}

// Skip is a method that came to no placement.
type Skip struct {
	Method string    `json:"method"`
	Kind   plan.Kind `json:"kind"`
	Reason string    `json:"reason"`
}

// columns are those of the table of methods.
func (s *Search) columns() (all []column) {
	value, second := "step time", "FIFO"
	if o := s.Objective.Normal(); o != plan.Step && s.Tasks == "" {
		value, second = valueNames[o], "step time"
	}
	add := func(head string, cell func(r *Row) string) { all = append(all, column{head, cell}) }
	add("method", func(r *Row) string {
		if r.Method == s.Best.Method {
			return r.Method + " *"
		}
		return r.Method
	})
	add("kind", func(r *Row) string { return string(r.Kind) })
	add(">"+value, func(r *Row) string {
		if !r.Feasible {
			return "does not fit"
		}
		return s.value(r.objective())
	})
	if s.Evaluator != "" {
		add(">predicted", func(r *Row) string { return orDash(r.Predicted, seconds) })
	}
	add(">reduction", s.reduction)
	if s.Tasks != "" {
		add(">placement", func(r *Row) string { return orDash(r.Placed, seconds) })
		add(">+ schedule", func(r *Row) string { return change(r.Placed, r.Scheduled) })
		add(">+ fusion", func(r *Row) string {
			if r.Predicted != nil { // as the other two are
				return change(r.Scheduled, r.Predicted)
			}
			return change(r.Scheduled, &r.StepTime)
		})
	}
	add(">"+second, func(r *Row) string {
		if r.Value != nil {
			return seconds(r.StepTime).String()
		}
		return seconds(r.FIFO).String()
	})
	add(">peak memory", func(r *Row) string {
		if len(r.Peak) == 0 {
			return "-"
		}
		return units.Bytes(slices.Max(r.Peak)).String()
	})
	add(">gap", func(r *Row) string { return share(r.Gap) })
	add(">evaluations", func(r *Row) string { return fmt.Sprint(r.Evaluations) })
	add(">cpu s", func(r *Row) string { return fmt.Sprintf("%.1f", r.CPUSeconds) })
	return all
}

// reduction is the share by which row r is shorter than what reducedFrom names.
func (s *Search) reduction(r *Row) string {
	switch {
	case s.OneDevice == nil:
		return share(r.Reduction)
	case s.OneDevice.Feasible:
		return share(r.OverOneDevice)
	case s.BestRule == nil || !s.BestRule.Feasible || !r.Feasible:
		return "-"
	}
	return percentOf(1 - r.objective()/s.BestRule.Value)
}

// reducedFrom names what reductions are relative to: the best plan on one device, where it
// does not fit the best rule, and where placement alone is decided the human expert's plan;
// nothing where the column is empty.
func (s *Search) reducedFrom() string {
	switch {
	case s.OneDevice == nil && slices.ContainsFunc(s.Rows, func(r Row) bool { return r.Reduction != nil }):
		return "the human expert's plan"
	case s.OneDevice == nil:
		return ""
	case s.OneDevice.Feasible:
		return "the best plan on one device"
	case s.BestRule == nil || !s.BestRule.Feasible:
		return ""
	}
	return "the best rule, as no plan on one device fits"
}

// column is a column of the table of methods: its head, as newTable takes it, and
// what a row has there.
type column struct {
	head string
	cell func(*Row) string
}

// WriteText writes s as a table with footnotes.
func (s *Search) WriteText(w io.Writer) error {
	pg := newPage(w)
	pg.prosef("%s: %s, %s on %s, %s\n", s.Graph.Name, words.Count(s.Graph.Ops, "op", "ops"), words.Count(s.Graph.Edges, "edge", "edges"), s.Machine.Name, devices(s.Machine.Devices))
	pg.fill("  ", fmt.Sprintf("%s%s scheduler, seed %d", s.decides(), s.Scheduler, s.Seed))
	pg.table(s.table())
	pg.notes("", s.notes()...)
	if than := s.reducedFrom(); than != "" {
		pg.prosef("reduction: 1 - %s / that of %s\n", valueNames[s.Objective.Normal()], than)
	}
	pg.prosef("gap: %s / proven lower bound - 1\n", valueNames[s.Objective.Normal()])
	if r := s.Robust; r != nil {
		pg.prosef("step times are %v\n", r)
	}
	pg.notes("assumed: ", s.Assumptions...)
	if m := s.Measured; m != nil {
		pg.prosef("step times are measured (%s); %s run, %d of them out of memory, %d known before, %d failed\n", m.how(), words.Count(m.Placements, "placement", "placements"), m.OutOfMemory, m.Known, m.Failed)
	}
	best := fmt.Sprintf("* best: %s, step %s", s.Best.Method, seconds(s.Best.StepTime))
	if s.Best.Value != nil {
		best = fmt.Sprintf("* best by %s: %s, %s %s", s.Objective, s.Best.Method, valueNames[s.Objective], s.value(*s.Best.Value))
	}
	if !s.Best.Feasible {
		best = fmt.Sprintf("* nothing fits; %s comes nearest", s.Best.Method)
	}
	bound := "proven lower bound"
	if s.Evaluator != "" {
		bound += " of predicted steps"
	}
	bound += " " + s.value(s.LowerBound)
	if unfused := s.value(s.UnfusedBound); s.UnfusedBound > 0 && unfused != s.value(s.LowerBound) {
		bound += fmt.Sprintf(" (%s without fusion)", unfused)
	}
	fewer := ""
	if s.OnFewer > 0 {
		fewer = fmt.Sprintf(" and %d on fewer GPUs", s.OnFewer)
	}
	pg.prosef("%s; %s\n", best, bound)
	pg.printf("  %s%s in %.1f s\n", words.Count(s.Evaluations, "evaluation", "evaluations"), fewer, s.Seconds)
	if s.Best.Feasible {
		pg.notes("", s.heldAgainst()...)
	}
	if r := s.Restricted; r != nil {
		fits := ""
		if !r.Feasible {
			fits = fmt.Sprintf(", which does not fit: %v too many", units.Bytes(r.Missing))
		}
		pg.prosef("for %s: %s of the best plan of its form%s\n", r.Program, s.value(r.Value), fits)
	}
	s.writeDivided(pg)
	return pg.err
}

// heldAgainst says what the best plan is worth beside one device and beside the rules.
func (s *Search) heldAgainst() (lines []string) {
	add := func(r *Reference, what string) {
		if r == nil {
			return
		}
		fused := ""
		if r.Fused {
			fused = ", fused"
		}
		if !r.Feasible {
			lines = append(lines, fmt.Sprintf("%s does not fit", what))
			return
		}
		lines = append(lines, fmt.Sprintf("%s than %s (%s%s)", against(r.Reduction), what, s.value(r.Value), fused))
	}
	add(s.OneDevice, "the best plan on one device")
	if s.BestRule != nil {
		add(s.BestRule, "the best rule, "+s.BestRule.Method)
	}
	if given := "the plan given"; s.Robust == nil {
		add(s.Given, given)
	} else {
		add(s.Given, "the best of the plans for the machine as it is")
	}
	return lines
}

// against says a reduction in words.
func against(share float64) string {
	switch p := percentOf(share); {
	case p == "0.0%":
		return "no shorter"
	case share < 0:
		return percentOf(-share) + " longer"
	default:
		return p + " shorter"
	}
}

// table has a row for each method, those without a placement last.
func (s *Search) table() *table {
	columns := s.columns()
	t := newTable().fitting("cpu s", "kind", "FIFO", "placement", "+ schedule", "+ fusion", "evaluations", "peak memory")
	for _, c := range columns {
		t.column(c.head)
	}
	for i := range s.Rows {
		var cells []any
		for _, c := range columns {
			cells = append(cells, c.cell(&s.Rows[i]))
		}
		t.row(cells...)
	}
	for _, k := range s.Skipped {
		cells := []any{k.Method, k.Kind}
		for range columns[len(cells):] {
			cells = append(cells, "-")
		}
		t.row(cells...)
	}
	return t
}

// notes are what the table leaves out.
func (s *Search) notes() (notes []string) {
	said := map[string]bool{}
	for _, r := range s.Rows {
		for _, n := range r.Notes {
			if !said[n] {
				notes = append(notes, strings.Join(s.noted(n), ", ")+": "+n)
			}
			said[n] = true
		}
		if r.Unmeasured != "" {
			notes = append(notes, r.Method+": the step time is predicted, not measured: "+r.Unmeasured)
		}
		if !r.Feasible {
			notes = append(notes, fmt.Sprintf("%s: %s more than the devices have; its step would take %s", r.Method, units.Bytes(r.Overflow), seconds(r.StepTime)))
		}
	}
	for _, k := range s.Skipped {
		notes = append(notes, k.Method+": unavailable: "+k.Reason)
	}
	return notes
}

// noted returns the methods whose rows have the note.
func (s *Search) noted(note string) (names []string) {
	for _, r := range s.Rows {
		if slices.Contains(r.Notes, note) {
			names = append(names, r.Method)
		}
	}
	return names
}

// valueNames are the objectives in the words of a column.
var valueNames = map[plan.Objective]string{plan.Step: "step time", plan.Throughput: "max load", plan.Memory: "max peak"}

// value prints a value of the objective in its unit.
func (s *Search) value(x float64) string {
	return Value(s.Objective, x)
}

// Value prints a value of objective o in its unit.
func Value(o plan.Objective, x float64) string {
	if o.Normal() == plan.Memory {
		return units.Bytes(x).String()
	}
	return units.Seconds(x).String()
}

// objective returns the value of the objective.
func (r *Row) objective() float64 {
	if r.Value != nil {
		return *r.Value
	}
	return r.StepTime
}

// decides says what the search decides on, where that is more than placement.
func (s *Search) decides() string {
	if s.Tasks == "" {
		return ""
	}
	return "tasks " + s.Tasks + "; "
}

// how says in words how a step is measured.
func (m *Measured) how() string {
	text := fmt.Sprintf("%s mode, median of %d", m.Mode, m.Repeats)
	if m.Runtime != "" {
		text = fmt.Sprintf("%s, %s clock, least of two rounds of %d", m.Runtime, cmp.Or(m.Clock, "virtual"), m.Repeats)
	}
	if m.Best > 0 {
		text += fmt.Sprintf(", the best %d of a round", m.Best)
	}
	return text
}

// change prints by how much a step time grows; nothing where it does not, or where
// one is not there.
func change(from, to *float64) string {
	if from == nil || to == nil || *from == *to {
		return "-"
	}
	return fmt.Sprintf("%+.1f%%", 100*(*to / *from - 1))
}
