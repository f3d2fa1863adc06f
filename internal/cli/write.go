package cli

import (
	"errors"
	"io"
	"time"

	"placer/internal/compare"
	"placer/internal/report"
	"placer/placer/search"
	"placer/plan"
	"placer/sim"
	"placer/sim/trace"
)

// manifestFormat names the version of manifest as a JSON document.
const manifestFormat = "placer manifest 1"

// manifest says how a run came about.
type manifest struct {
	Format      string         `json:"format"`
	Program     report.Version `json:"program"`
	Seed        uint64         `json:"seed"`
	GraphHash   string         `json:"graph_hash"`
	MachineHash string         `json:"machine_hash"`
	Evaluations int            `json:"evaluations"`
	Seconds     float64        `json:"seconds"`
	Ended       string         `json:"ended"` // RFC 3339
	Resumed     bool           `json:"resumed"`
}

// write writes what a search has found into its run folder: plan, traces,
// manifest, and last the result, which marks the run as ended. doc is there whatever
// could not be written. infeasible is the simulator's error if the best plan does not
// fit.
func (c *console) write(s *searchRun, found *search.Result, measured *measuring) (doc *report.Search, infeasible, err error) {
	doc = searchDocument(s, found)
	measured.document(s, doc)
	if measured != nil && !doc.Best.Feasible {
		infeasible = tooMuch(found.Rows[found.Best].Score)
	}
	if s.task.Objective.Normal() == plan.Throughput && !doc.Best.Feasible {
		infeasible = tooMuch(found.Rows[found.Best].Score)
	}
	best := bestPlan(s, found)
	file, err := best.File(s.task.Graph, s.task.Machine)
	if err != nil {
		return doc, infeasible, err
	}
	if err := s.run.Write(search.PlanFile, file.Write); err != nil {
		return doc, infeasible, err
	}
	r, err := s.task.Simulator.Run(best, sim.Options{Trace: true})
	var over *sim.Infeasible
	if errors.As(err, &over) {
		if s.task.Objective.Normal() != plan.Throughput { // which counts memory in its own way
			infeasible = over
		}
	} else if err != nil {
		return doc, infeasible, err
	}
	s.page = newPage(s.task.Graph, s.task.Machine, best, r, err, doc)
	if err := s.run.Write(search.PerfettoFile, func(w io.Writer) error { return trace.WritePerfetto(w, r.Trace, s.task.Graph, s.task.Machine) }); err != nil {
		return doc, infeasible, err
	}
	if err := s.run.Write(search.ChromeFile, func(w io.Writer) error { return trace.WriteChrome(w, r.Trace, s.task.Graph, s.task.Machine) }); err != nil {
		return doc, infeasible, err
	}
	if err := s.run.WriteJSON(search.ManifestFile, manifest{
		Format: manifestFormat, Program: buildVersion(), Seed: s.config.Seed, GraphHash: s.config.GraphHash, MachineHash: s.config.MachineHash,
		Evaluations: found.Evaluations, Seconds: found.Seconds, Ended: c.now().UTC().Format(time.RFC3339), Resumed: s.memory != nil,
	}); err != nil {
		return doc, infeasible, err
	}
	return doc, infeasible, s.run.WriteJSON(search.ResultFile, doc)
}

// bestPlan returns the plan of the best row.
func bestPlan(s *searchRun, found *search.Result) *plan.Plan {
	r := &found.Rows[found.Best]
	return &plan.Plan{Graph: s.task.Graph.Hash(), Machine: s.task.Machine.Name, Method: r.Method, Decision: r.Decision}
}

// searchDocument returns the report of a search.
func searchDocument(s *searchRun, found *search.Result) *report.Search {
	g, m := s.task.Graph, s.task.Machine
	d := &report.Search{
		Format: report.SearchFormat,
		Graph:  report.IdentifyGraph(g), Machine: report.IdentifyMachine(m),
		Budget: report.Budget(s.config.Budget), Seed: s.config.Seed, Granularity: s.config.Granularity, Scheduler: string(s.config.Scheduler), Objective: s.config.Objective, LowerBound: s.task.Bound, UnfusedBound: s.task.UnfusedBound,
		Rows: []report.Row{}, Skipped: []report.Skip{}, Seconds: found.Seconds, Evaluations: found.Evaluations, OnFewer: found.OnFewer, Interrupted: found.Interrupted,
	}
	d.Assumptions = s.loaded.assumptions
	if r := s.robustly; r != nil {
		d.Robust = &report.Robust{Machines: r.Machines, Error: r.Error, Quantile: r.Quantile}
	}
	best := found.Rows[found.Best].Score.Value
	refer := found.References
	d.OneDevice, d.BestRule, d.Given = referenceDocument(refer.OneDevice, best), referenceDocument(refer.Rule, best), referenceDocument(refer.Given, best)
	if t := s.task.Tasks; t != 0 && t != plan.Place {
		d.Tasks = t.String()
	}
	if found.FirstFeasible >= 0 {
		d.FirstFeasible = &found.FirstFeasible
	}
	for i := range found.Rows {
		d.Rows = append(d.Rows, rowDocument(s, found, &found.Rows[i], d.OneDevice))
	}
	for _, k := range found.Skipped {
		d.Skipped = append(d.Skipped, report.Skip(k))
	}
	d.Best = d.Rows[found.Best]
	d.Divide(s.divided, s.batch)
	return d
}

// referenceDocument is what the best value is held against.
func referenceDocument(r *search.Reference, best float64) *report.Reference {
	if r == nil {
		return nil
	}
	return &report.Reference{Method: r.Method, Value: r.Score.Value, Feasible: r.Score.Feasible(), Fused: r.Fusion != nil, Reduction: compare.Reduction(best, r.Score.Value)}
}

// rowDocument is row r of a search, beside the best plan on one device where there is one.
func rowDocument(s *searchRun, found *search.Result, r *search.Row, one *report.Reference) report.Row {
	row := report.Row{
		Method: r.Method, Kind: r.Kind, StepTime: r.Score.Value, FIFO: r.FIFO.Value, Feasible: r.Score.Feasible(), Overflow: int64(r.Score.Overflow),
		LowerBound: s.task.Bound, Evaluations: r.Evaluations, CPUSeconds: r.CPUSeconds, Notes: r.Notes, Unmeasured: r.Unmeasured,
	}
	if r.Predicted != nil {
		row.Predicted = &r.Predicted.Value
	}
	if t := s.task.Tasks; t.Has(plan.Schedule) || t.Has(plan.Fuse) {
		row.Placed, row.Scheduled = &r.Placed.Value, &r.Scheduled.Value
	}
	if s.task.Objective.Normal() != plan.Step {
		value := r.Score.Value
		row.Value = &value
		row.StepTime, row.FIFO = s.task.Simulator.Evaluate(plan.Decision{Device: r.Device, Priority: r.Priority}).Value, s.task.Simulator.Evaluate(plan.Decision{Device: r.Device}).Value
	}
	for _, b := range r.Peak {
		row.Peak = append(row.Peak, int64(b))
	}
	if gap, ok := r.Gap(s.task.Bound); ok && row.Feasible {
		row.Gap = &gap
	}
	if share, ok := found.Reduction(r, "human"); ok && row.Feasible {
		row.Reduction = &share
	}
	if one != nil && one.Feasible && row.Feasible {
		share := compare.Reduction(r.Score.Value, one.Value)
		row.OverOneDevice = &share
	}
	return row
}
