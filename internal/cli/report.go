package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"placer/graph"
	"placer/hw"
	"placer/hw/bench"
	"placer/internal/compare"
	"placer/internal/jsonx"
	"placer/internal/report"
	"placer/internal/report/web"
	"placer/internal/tfevents"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// Files that report writes into the folders it reads.
const (
	reportFile   = "report.html"
	comparedFile = "report-compare.html"
)

func (c *console) reportCommand() *cobra.Command {
	var output string
	var both bool
	cmd := &cobra.Command{
		Use:   "report FOLDER",
		Short: "Write a run as one web page: timeline, memory, placement, convergence",
		Long: "report writes one HTML file that needs no network. From the folder of a search: the\n" +
			"timeline of devices and links, memory, the placement by layer, the convergence and the\n" +
			"table of methods. From the folder of a comparison or of a pretraining: its charts.\n" +
			"From the JSON of 'bench hw': the roofline of each card. With --compare it shows two\n" +
			"plans on one time axis: those of two runs, or of a run and of a plan file for the same\n" +
			"graph.",
		Example: "  placer report runs/gnmt8-p100-1\n  placer report --compare runs/gnmt8-p100-1 runs/gnmt8-p100-2 -o both.html",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case both && len(args) != 2:
				return usagef("want two run folders, or one and a plan file, behind --compare; got %d", len(args))
			case !both && len(args) != 1:
				return usagef("want one run folder, as runs/gnmt8-p100-1; got %d", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if err := writable(output); err != nil {
				return err
			}
			if both {
				return c.reportBoth(args[0], args[1], output)
			}
			return c.report(args[0], output)
		},
	}
	cmd.Flags().BoolVar(&both, "compare", false, "two plans on one time axis")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write the page there (default report.html in the folder); - writes it to stdout")
	return cmd
}

// report writes the page of what lies at path.
func (c *console) report(path, output string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return c.reportHardware(path, output)
	}
	if output == "" {
		output = filepath.Join(path, reportFile)
	}
	switch {
	case isThere(path, search.ConfigFile):
		x, err := c.readRun(path)
		if err != nil {
			return err
		}
		return c.writePage(output, func(w io.Writer) error { return web.WriteSearch(w, x) })
	case isThere(path, compare.ResultFile):
		return c.reportComparison(filepath.Join(path, compare.ResultFile), output)
	}
	return c.reportPretraining(path, output)
}

// isThere reports whether the folder has a file of that name.
func isThere(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// writePage writes a page and says where.
func (c *console) writePage(output string, write func(io.Writer) error) error {
	if err := c.writeOutput(output, write); err != nil {
		return err
	}
	if output != "-" {
		c.say("report %s", output)
	}
	return nil
}

// writeReport writes the page of a search that has ended into its run folder.
func (c *console) writeReport(s *searchRun) (path string, err error) {
	path = s.run.Path(reportFile)
	if s.page == nil {
		return path, errors.New("the plan could not be simulated")
	}
	if s.page.Curves, err = readCurves(s.run.Dir(), s.page.Search); err != nil {
		return path, err
	}
	return path, s.run.Write(reportFile, func(w io.Writer) error { return web.WriteSearch(w, s.page) })
}

// newPage returns a plan as pages have it. r is its step with the trace, over the
// simulator's error, doc the result of the search or nil.
func newPage(g *graph.Graph, m *hw.Machine, p *plan.Plan, r *sim.Result, over error, doc *report.Search) *web.Plan {
	x := &web.Plan{Graph: g, Machine: m, Result: r, Search: doc}
	if doc != nil && doc.Objective.Normal() == plan.Step && doc.Robust == nil {
		x.Bound = doc.LowerBound
	}
	x.Simulation = report.Simulate(g, m, p, r, &sim.Bound{Seconds: units.Seconds(x.Bound)}, over)
	if x.Bound == 0 { // none is known of these steps
		x.Simulation.Gap = nil
	}
	x.Simulation.Fusion, x.Simulation.Scheduler = planOwn, planOwn
	return x
}

// readCurves reads how the methods of the run in dir came to what doc says.
func readCurves(dir string, doc *report.Search) (curves []web.Curve, err error) {
	history, err := search.ReadHistory(dir)
	if err != nil {
		return nil, err
	}
	for i := range doc.Rows {
		r := &doc.Rows[i]
		curve := web.Curve{Method: r.Method, Kind: r.Kind}
		best := math.Inf(1)
		for _, h := range history {
			if h.Method == r.Method && h.Feasible && (h.Value < best || h.What == search.Ended) {
				best = min(best, h.Value)
				curve.Points = append(curve.Points, web.Point{Seconds: h.Seconds, Evaluations: h.Evaluations, Value: best})
			}
		}
		curves = append(curves, curve)
	}
	return curves, nil
}

// readRun reads the run in dir and simulates its plan.
func (c *console) readRun(dir string) (*web.Plan, error) {
	doc, err := c.readResult(dir)
	if err != nil {
		return nil, err
	}
	x, err := c.simulatePlan(dir, filepath.Join(dir, search.PlanFile), doc)
	if err != nil {
		return nil, err
	}
	x.Curves, err = readCurves(dir, doc)
	return x, err
}

// readResult reads the result of the run in dir.
func (c *console) readResult(dir string) (*report.Search, error) {
	path := filepath.Join(dir, search.ResultFile)
	var doc report.Search
	switch err := search.ReadDocument(path, &doc); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: the search has no result yet; to continue: placer search --resume %s", dir, dir)
	case err != nil:
		return nil, err
	case doc.Format != report.SearchFormat || len(doc.Rows) == 0:
		return nil, fmt.Errorf("%s: format %q and %d rows, want %q and at least one", path, doc.Format, len(doc.Rows), report.SearchFormat)
	}
	return &doc, nil
}

// simulatePlan simulates the plan at planPath for the graph and the machine of the run
// in dir. doc is the result of the search that found it, or nil.
func (c *console) simulatePlan(dir, planPath string, doc *report.Search) (*web.Plan, error) {
	k, err := c.readRunSettings(dir)
	if err != nil {
		return nil, err
	}
	l, m, err := c.loadRun(dir, &k)
	if err != nil {
		return nil, err
	}
	file, err := c.readPlan(planPath)
	if err != nil {
		return nil, err
	}
	p, err := file.Plan(l.Graph, m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", planPath, err)
	}
	how, err := k.options()
	if err != nil {
		return nil, err
	}
	s, _, err := problem.Simulator(l.Source, m, how)
	if err != nil {
		return nil, err
	}
	r, err := s.Run(p, sim.Options{Trace: true})
	var over *sim.Infeasible
	if err != nil && !errors.As(err, &over) {
		return nil, err
	}
	x := newPage(l.Graph, m, p, r, err, doc)
	if doc != nil && k.Robust == "" && !k.measures() && k.Objective.Normal() == plan.Step {
		if says := otherStep(doc.Best.StepTime, float64(r.Makespan)); says != "" {
			c.note("%s", says)
			x.Notes = append(x.Notes, says)
		}
	}
	return x, nil
}

// otherStep says that a run has another step for its plan, then, than is predicted now, as by
// another version of the cost model; empty where it has the same.
func otherStep(then, now float64) string {
	const rounding = 1e-6 // of another kind of processor
	if math.Abs(now-then) <= rounding*then {
		return ""
	}
	return fmt.Sprintf("the run has a step of %s for its plan, and this version of placer predicts %s: tables are as the run has them, the timeline is as predicted now", report.Value(plan.Step, then), report.Value(plan.Step, now))
}

// reportBoth writes the page of two plans.
func (c *console) reportBoth(a, b, output string) error {
	aFile, bFile := isFile(a), isFile(b)
	if aFile && bFile {
		return usagef("--compare: one of the two must be a run folder, which names graph and machine")
	}
	var plans [2]*web.Plan
	for k, path := range []string{a, b} {
		var err error
		if isFile(path) {
			run := []string{b, a}[k]
			plans[k], err = c.simulatePlan(run, path, nil)
		} else {
			plans[k], err = c.readRun(path)
		}
		if err != nil {
			return err
		}
		plans[k].Title = filepath.Base(path)
	}
	if aFile {
		plans[0].Bound = plans[1].Bound
	} else if bFile {
		plans[1].Bound = plans[0].Bound
	}
	if plans[0].Title == plans[1].Title {
		plans[0].Title, plans[1].Title = a, b
	}
	if output == "" {
		output = filepath.Join(a, comparedFile)
		if aFile {
			output = filepath.Join(b, comparedFile)
		}
	}
	return c.writePage(output, func(w io.Writer) error { return web.WriteComparedPlans(w, plans[0], plans[1]) })
}

// isFile reports whether path is a file, not a folder.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// reportComparison writes the page of the comparison in the file at path.
func (c *console) reportComparison(path, output string) error {
	var doc compare.Comparison
	if err := search.ReadDocument(path, &doc); err != nil {
		return err
	}
	now, err := doc.Current()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return c.writePage(output, func(w io.Writer) error { return web.WriteComparison(w, now) })
}

// reportPretraining writes the page of the event files in dir.
func (c *console) reportPretraining(dir, output string) error {
	records, err := tfevents.ReadFolder(dir)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return fmt.Errorf("%s: neither a search (%s), nor a comparison (%s), nor a pretraining (events.out.tfevents.*)", dir, search.ConfigFile, compare.ResultFile)
	}
	return c.writePage(output, func(w io.Writer) error { return web.WritePretraining(w, filepath.Base(dir), records) })
}

// reportHardware writes the page of what 'bench hw' has written to the file at path.
func (c *console) reportHardware(path, output string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if of := jsonx.Format(data); of != bench.Format { // before its keys are looked at
		return fmt.Errorf("%s: format is %q, want %q, or a folder", path, of, bench.Format)
	}
	var r bench.Result
	if err := search.ReadDocument(path, &r); err != nil {
		return err
	}
	if output == "" {
		output = strings.TrimSuffix(path, filepath.Ext(path)) + ".html"
	}
	return c.writePage(output, func(w io.Writer) error { return web.WriteHardware(w, &r) })
}
