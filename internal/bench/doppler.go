package bench

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"placer/baselines/search/uncontended"
	"placer/graph/formats/doppler"
	"placer/graph/formats/foreign"
	"placer/internal/report"
	"placer/placer/methods"
	"placer/placer/problem"
	"placer/plan"
)

// Doppler places the task graphs of DOPPLER (ICLR 2026) under the model that it
// trains on: first come first served, transfers without contention.
type Doppler struct {
	Data   string // folder with the graphs, *.txt
	Search uncontended.Config
}

// Run places every graph in the folder.
func (f *Doppler) Run(ctx context.Context, host Host) (*report.TaskGraphs, error) {
	if f.Data == "" {
		return nil, ConfigErrorf("name the folder of the graphs by --data")
	}
	paths, err := filepath.Glob(filepath.Join(f.Data, "*.txt"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: no *.txt", f.Data)
	}
	doc := &report.TaskGraphs{Format: report.TaskGraphsFormat, Steps: f.Search.Steps, Seed: f.Search.Seed}
	for _, path := range paths {
		row, err := f.place(ctx, host, path)
		if err != nil {
			return nil, err
		}
		doc.Rows = append(doc.Rows, *row)
		host.Log("%s: %.2f ms", row.Graph, row.Found)
	}
	return doc, nil
}

func (f *Doppler) place(ctx context.Context, host Host, path string) (*report.TaskGraphRow, error) {
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
	t, err := problem.New(problem.Source{Graph: x.Graph, Times: table}, m, problem.Options{Scheduler: problem.FIFO})
	if err != nil {
		return nil, err
	}
	row := &report.TaskGraphRow{Graph: x.Graph.Name(), Ops: x.Graph.NumOps(), Devices: devices, Rivals: map[string]float64{}, Bound: 1e3 * t.Bound}
	p := t.Problem
	p.Seed = f.Search.Seed
	for _, name := range report.TaskGraphRivals {
		method, err := methods.Find(name)
		if err != nil {
			return nil, err
		}
		placer, err := method.New(methods.Default())
		if err != nil {
			return nil, err
		}
		out, err := placer.Place(ctx, &p)
		if err != nil {
			row.Rejected = append(row.Rejected, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		row.Rivals[name] = 1e3 * t.Evaluator.Evaluate(plan.Decision{Device: out.Device}).Value
	}
	start := host.Clock()
	clock := uncontended.NewClock(&p)
	from := t.Units.Blocks(t.Evaluator.OpSeconds(0), devices)
	row.Placed, _ = uncontended.Search(ctx, t.Graph, clock, from, f.Search, nil)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	row.Seconds = host.Clock() - start
	found := t.Evaluator.Evaluate(plan.Decision{Device: row.Placed}).Value // the simulator's word, not the clock's
	row.Found, row.Gap = 1e3*found, found/t.Bound-1
	row.Optimal = row.Gap < 1e-9
	return row, nil
}
