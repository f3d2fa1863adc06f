package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"placer/baselines/catalogue"
	"placer/baselines/uncontended"
	"placer/graph/doppler"
	"placer/internal/foreign"
	"placer/plan"
	"placer/report"
)

// dopplerFlags are the flags of bench doppler.
type dopplerFlags struct {
	data   string
	search uncontended.Config
	json   bool
}

func (c *console) benchDopplerCommand() *cobra.Command {
	f := dopplerFlags{search: uncontended.Default()}
	cmd := &cobra.Command{
		Use:   "doppler",
		Short: "Place DOPPLER's task graphs under its model",
		Long: "doppler reads the task graphs of DOPPLER (ICLR 2026) under --data and places them\n" +
			"on four devices (eight where the file's name starts with 8gpu) under the model it\n" +
			"trains on: first come first served, transfers without contention. It prints rules\n" +
			"of thumb, list schedulers and the specialised search beside a proven lower bound.",
		Example: "  placer bench doppler --data doppler",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.data == "" {
				return usagef("name the folder of the graphs by --data")
			}
			doc, err := c.benchDoppler(cmd.Context(), &f)
			if err != nil {
				return err
			}
			return c.print(f.json, doc)
		},
	}
	cmd.Flags().StringVar(&f.data, "data", "", "folder with the graphs, *.txt")
	cmd.Flags().IntVar(&f.search.Steps, "steps", f.search.Steps, "placements that the search clocks")
	cmd.Flags().Uint64Var(&f.search.Seed, "seed", f.search.Seed, "seed of the search")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

func (c *console) benchDoppler(ctx context.Context, f *dopplerFlags) (*report.TaskGraphs, error) {
	paths, err := filepath.Glob(filepath.Join(f.data, "*.txt"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: no *.txt", f.data)
	}
	doc := &report.TaskGraphs{Format: report.TaskGraphsFormat, Steps: f.search.Steps, Seed: f.search.Seed}
	for _, path := range paths {
		row, err := c.benchTaskGraph(ctx, f, path)
		if err != nil {
			return nil, err
		}
		doc.Rows = append(doc.Rows, *row)
		c.progressLine("%s: %.2f ms", row.Graph, row.Found)
	}
	return doc, nil
}

func (c *console) benchTaskGraph(ctx context.Context, f *dopplerFlags, path string) (*report.TaskGraphRow, error) {
	data, err := foreign.ReadFile(path)
	if err != nil {
		return nil, err
	}
	x, err := doppler.Import(data, path)
	if err != nil {
		return nil, err
	}
	devices := doppler.Devices
	if strings.HasPrefix(filepath.Base(path), "8gpu") {
		devices = 8
	}
	table := x.Times.On(devices)
	m, err := table.Machine()
	if err != nil {
		return nil, err
	}
	t, _, err := task(loaded{Graph: x.Graph, times: table}, m, judging{scheduler: fifo})
	if err != nil {
		return nil, err
	}
	row := &report.TaskGraphRow{Graph: x.Graph.Name(), Ops: x.Graph.NumOps(), Devices: devices, Rivals: map[string]float64{}, Bound: 1e3 * t.Bound}
	problem := &plan.Problem{Graph: t.Graph, Machine: t.Machine, Units: t.Units, Evaluator: t.Evaluator, Priority: t.Priority, Seed: f.search.Seed}
	for _, name := range report.TaskGraphRivals {
		method, err := catalogue.Find(name)
		if err != nil {
			return nil, err
		}
		p, err := method.New(catalogue.Default())
		if err != nil {
			return nil, err
		}
		out, err := p.Place(ctx, problem)
		if err != nil {
			row.Rejected = append(row.Rejected, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		row.Rivals[name] = 1e3 * t.Evaluator.Evaluate(out.Device, nil).Seconds
	}
	start := c.clock()
	clock := uncontended.NewClock(problem)
	from := t.Units.Blocks(t.Evaluator.OpSeconds(0), devices)
	row.Placed, _ = uncontended.Search(ctx, t.Graph, clock, from, f.search, nil)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	row.Seconds = c.clock() - start
	found := t.Evaluator.Evaluate(row.Placed, nil).Seconds // the simulator's word, not the clock's
	row.Found, row.Gap = 1e3*found, found/t.Bound-1
	row.Optimal = row.Gap < 1e-9
	return row, nil
}
