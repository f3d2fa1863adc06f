package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"placer/graph"
	"placer/hw"
	"placer/internal/report"
	"placer/placer/problem"
	"placer/placer/replan"
	"placer/plan"
	"placer/units"
)

// replanFlags are the flags of replan.
type replanFlags struct {
	inputFlags
	plan, maxMove, output string
	lost                  []string // names of devices
	budget                time.Duration
	evaluations           int
	seed                  uint64
	json                  bool
}

func (c *console) replanCommand() *cobra.Command {
	var f replanFlags
	cmd := &cobra.Command{
		Use:   "replan",
		Short: "Adapt a plan to a machine that changed, moving few bytes",
		Long: "replan changes a plan for a machine that has lost devices, or whose devices or links\n" +
			"have slowed. --lost names those that are gone of the machine that the plan was made\n" +
			"for; of another machine file devices are matched by name. At most --max-move bytes of\n" +
			"weights and optimizer state go to devices that did not hold them. What was on a lost\n" +
			"device counts, as it has to be loaded again.",
		Example: "  placer replan --workload llama --plan old.json --machine box.json --lost gpu:3 -o new.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return c.replan(cmd.Context(), &f)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&f.plan, "plan", "", "`FILE` of the old plan; - reads stdin")
	cmd.Flags().StringSliceVar(&f.lost, "lost", nil, "`DEVICES` of the machine that are gone, by name, as gpu:3")
	cmd.Flags().StringVar(&f.maxMove, "max-move", "", "most bytes to move, as 2GB, or 0; any number without it")
	cmd.Flags().DurationVar(&f.budget, "budget", 30*time.Second, "`TIME` of the search")
	cmd.Flags().IntVar(&f.evaluations, "evaluations", 0, "evaluations of the search instead of --budget, for the same plan on every host")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed of every random choice")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "write the plan to this file; - writes it to stdout instead of the text")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	exclusive(cmd, "budget", "evaluations")
	return cmd
}

func (f *replanFlags) check(cmd *cobra.Command) error {
	if err := f.inputFlags.check(cmd, f.plan); err != nil {
		return err
	}
	switch {
	case f.plan == "":
		return usagef("name a plan by --plan")
	case cmd.Flags().Changed("evaluations") && f.evaluations < 1:
		return usagef("--evaluations %d: want at least 1", f.evaluations)
	case f.budget <= 0:
		return usagef("--budget %v: want more than 0", f.budget)
	}
	if _, err := f.limit(); err != nil {
		return usagef("--max-move: %v", err)
	}
	return checkOutput(f.output, f.json)
}

// limit returns the bytes of --max-move, below 0 for any number.
func (f *replanFlags) limit() (units.Bytes, error) {
	switch f.maxMove {
	case "":
		return -1, nil
	case "0": // which needs no unit
		return 0, nil
	}
	b, err := units.ParseBytes(f.maxMove)
	if err == nil && b < 0 {
		err = fmt.Errorf("%s, want 0 or more", f.maxMove)
	}
	return b, err
}

func (c *console) replan(ctx context.Context, f *replanFlags) error {
	l, m, err := c.load(&f.inputFlags)
	if err != nil {
		return err
	}
	if m, err = without(m, f.lost); err != nil {
		return err
	}
	old, err := c.readPlan(f.plan)
	if err != nil {
		return err
	}
	given := l.Graph
	if err := l.change(old); err != nil {
		return fmt.Errorf("%s: %w", inputName(f.plan), err)
	}
	if err := fitsGraph(old, l.Graph); err != nil {
		return fmt.Errorf("%s: %w", inputName(f.plan), err)
	}
	before, lost := onMachine(old, m)
	doc := &report.Replanned{Format: report.ReplannedFormat, Graph: report.IdentifyGraph(l.Graph), Machine: report.IdentifyMachine(m), Lost: lost}
	p, err := problem.New(l.Source, m, problem.Options{})
	if err != nil {
		return err
	}
	if old.Priority != nil {
		p.Priority = old.Priority
	}
	p.Fusion, p.Seed, p.Clock = old.Fusion, f.seed, c.clock
	p.Budget = plan.Budget{Seconds: f.budget.Seconds()}
	if f.evaluations > 0 {
		p.Budget = plan.Budget{Evaluations: f.evaluations}
	}
	limit, err := f.limit()
	if err != nil {
		return err
	}
	o, err := replan.Find(ctx, p, before, limit)
	if err != nil {
		return err
	}
	doc.Kept, doc.KeptMissing, doc.StepTime, doc.Feasible, doc.Missing = o.Kept.Value, int64(o.Kept.Overflow), o.Score.Value, o.Score.Feasible(), int64(o.Score.Overflow)
	doc.Moved, doc.Forced, doc.Held, doc.Evaluations = int64(o.Moved), int64(o.Forced), int64(o.Held), o.Evaluations
	if limit >= 0 {
		b := int64(limit)
		doc.Limit = &b
	}
	x := &plan.Plan{Graph: l.Hash(), Machine: m.Name, Method: "replan", Decision: o.Or(p.Decision)}
	file, err := x.ChangedFile(given, old.Changes, l.Graph, m)
	if err != nil {
		return err
	}
	if err := c.emit(f.output, file.Write, f.json, doc); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return interrupted("interrupted: the best plan so far was written")
	}
	if !o.Score.Feasible() {
		return tooMuch(o.Score)
	}
	return nil
}

// without returns m without the devices of these names.
func without(m *hw.Machine, names []string) (*hw.Machine, error) {
	var keep []int
	var there []string
	for k, d := range m.Devices {
		there = append(there, d.Name)
		if !slices.Contains(names, d.Name) {
			keep = append(keep, k)
		}
	}
	for _, name := range names {
		if !slices.Contains(there, name) {
			return nil, usagef("--lost %s: machine %s has no such device; it has %s", name, m.Name, strings.Join(there, ", "))
		}
	}
	switch len(keep) {
	case 0:
		return nil, usagef("--lost names every device of machine %s", m.Name)
	case m.NumDevices():
		return m, nil
	}
	return m.Keep(keep), nil
}

// fitsGraph reports what keeps the plan in f from being one for g, on whatever machine.
func fitsGraph(f *plan.File, g *graph.Graph) error {
	named := &hw.Machine{Name: f.MachineName} // of the names alone
	for _, name := range f.Devices {
		named.Devices = append(named.Devices, hw.Device{Name: name})
	}
	_, err := f.Plan(g, named)
	return err
}

// onMachine returns where the plan in f has each op as m numbers devices, [N], with
// replan.Lost for devices that m does not have, and the names of those.
func onMachine(f *plan.File, m *hw.Machine) (device []uint8, lost []string) {
	lost = []string{} // a list in the document
	to := make([]uint8, len(f.Devices))
	for k, name := range f.Devices {
		at := slices.IndexFunc(m.Devices, func(d hw.Device) bool { return d.Name == name })
		if at < 0 {
			at = replan.Lost
			lost = append(lost, name)
		}
		to[k] = uint8(at)
	}
	device = make([]uint8, len(f.Device))
	for i, d := range f.Device {
		device[i] = to[d]
	}
	return device, lost
}
