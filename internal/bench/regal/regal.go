package regal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"

	"placer/baselines/exact/cpsat"
	"placer/baselines/regal/gas"
	"placer/baselines/regal/propose"
	"placer/baselines/regal/rivals"
	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
	"placer/graph"
	"placer/internal/bench"
	"placer/internal/compare"
	"placer/internal/report"
	"placer/nn"
	"placer/nn/safetensors"
	"placer/units"
)

// Compare runs all methods on all graphs and returns the table. When ctx ends the
// error is a bench.Interrupted if a folder keeps what there is.
func Compare(ctx context.Context, c Config, host bench.Host) (*report.Regal, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	m, err := c.machine()
	if err != nil {
		return nil, err
	}
	doc := &report.Regal{Format: report.RegalFormat, Task: string(c.Task), Devices: m.Devices, Memory: m.Memory, Evaluations: c.Evaluations, Seed: c.Seed}
	run := rivals.Config{Evaluations: c.Evaluations, Seed: c.Seed, Workers: c.Workers, Clock: host.Thread}
	if c.Task == rivals.Memory {
		run.Objective = sched.PeakMemory
	}
	if run.Graphs, run.Graph, err = c.graphs(ctx, m); err != nil {
		return nil, err
	}
	if run.Methods, err = c.methods(doc); err != nil {
		return nil, err
	}
	journal, err := openJournal(&c, doc, run.Methods)
	if err != nil {
		return nil, err
	}
	defer journal.close()
	run.Known = journal.known
	done := len(journal.known)
	run.Done = func(k int, g rivals.Graph) error {
		done++
		host.Log("%d of %d: %s, %d ops", done, run.Graphs, g.Name, g.Ops)
		return journal.add(k, g)
	}
	graphs, err := rivals.Compare(ctx, run)
	if errors.Is(err, context.Canceled) && c.Out != "" {
		return nil, bench.Interrupted{Message: fmt.Sprintf("interrupted after %d of %d graphs; to continue: the same command with --out %s", done, run.Graphs, c.Out)}
	}
	if err != nil {
		return nil, err
	}
	addRows(doc, run.Methods, graphs)
	return doc, journal.finish(doc, graphs)
}

// methods returns the methods that take part and notes those that do not.
func (c *Config) methods(doc *report.Regal) ([]rivals.Method, error) {
	doc.Notes = append(doc.Notes, "Model: transfers are synchronous; data tensors that cross devices block both, control dependencies only order.")
	o := rivals.Options{Solver: rivals.DefaultCPSAT(), BRKGA50K: c.Long}
	o.Solver.Work = c.CPSATWork
	if !c.NoCPSAT && c.Task != rivals.Memory {
		l, err := cpsat.Open("")
		switch {
		case errors.Is(err, cpsat.ErrUnavailable):
			doc.Notes = append(doc.Notes, "No CP-SAT row: "+err.Error()+".")
		case err != nil:
			return nil, err
		}
		o.CPSAT = l
	}
	if c.GAS != "" {
		p, err := loadGAS(c.GAS, c.Devices)
		if err != nil {
			return nil, err
		}
		o.GAS = p
	}
	if err := c.proposers(doc, &o); err != nil {
		return nil, err
	}
	if proposers := o.REGAL != nil || o.GAS != nil || len(o.Others) > 0; proposers && c.Evaluations <= propose.FeatureEvaluations {
		return nil, bench.ConfigErrorf("--evaluations %d: want more than %d, which a policy's features take; --regal none leaves the policies out", c.Evaluations, propose.FeatureEvaluations)
	}
	return rivals.Methods(o), nil
}

// loadGAS returns the policy whose weights are in file.
func loadGAS(file string, devices int) (*gas.Policy, error) {
	weights, err := readTensors(file)
	if err != nil {
		return nil, err
	}
	backend, err := nn.NewBackend(nn.Default())
	if err != nil {
		return nil, err
	}
	config := gas.Default()
	config.Devices = devices
	p, err := gas.New(config, backend, rand.New(rand.NewPCG(0, 0)))
	if err != nil {
		return nil, err
	}
	if err := nn.Restore(weights, p.Params(), nil); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

// readTensors reads a file of weights.
func readTensors(file string) (*safetensors.File, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	f, err := safetensors.Read(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return f, nil
}

// graphs returns how many graphs there are and what gives number k: the file's or
// workload's own costs first, then its copies.
func (c *Config) graphs(ctx context.Context, m sched.Machine) (int, func(context.Context, int) (*sched.Problem, error), error) {
	if c.synthetic() {
		config := synth.Default()
		config.Machine = m
		return c.Graphs, func(ctx context.Context, k int) (*sched.Problem, error) {
			p, _, err := synth.Filtered(ctx, config, synth.DefaultFilter(), c.Seed, uint64(k))
			return p, err
		}, nil
	}
	var all []*sched.Problem
	add := func(g *graph.Graph, seconds []units.Seconds, err error) error {
		if err != nil {
			return err
		}
		p, err := sched.FromGraph(g, seconds, m)
		all = append(all, p)
		return errors.Join(err, ctx.Err())
	}
	for _, file := range c.Files {
		if err := add(c.Load("", file, c.GPU)); err != nil {
			return 0, nil, err
		}
	}
	for _, w := range c.Workloads {
		if err := add(c.Load(w, "", c.GPU)); err != nil {
			return 0, nil, err
		}
	}
	each := 1 + c.Copies
	return len(all) * each, func(_ context.Context, k int) (*sched.Problem, error) {
		p, copy := all[k/each], k%each
		if copy == 0 {
			return p, nil
		}
		return synth.Augment(p, p.Name()+"#"+strconv.Itoa(copy), rand.New(rand.NewPCG(c.Seed, uint64(k)))), nil
	}, nil
}

// addRows adds what each method came to.
func addRows(doc *report.Regal, methods []rivals.Method, graphs []rivals.Graph) {
	base := 0
	var names []string
	for i, m := range methods {
		names = append(names, m.Name)
		if m.Name == rivals.Base {
			base = i
		}
	}
	doc.Graphs = len(graphs)
	for _, g := range graphs {
		doc.MeanOps += float64(g.Ops) / float64(len(graphs))
	}
	for _, x := range rivals.Table(names, graphs, base) {
		row := report.RegalRow{
			Method: x.Method, Improvement: x.Improvement, Gap: x.Gap, BoundGap: x.BoundGap, WorstBoundGap: x.WorstBoundGap, Optimal: x.AtBound,
			Wins: x.Wins, Ties: x.Ties, Losses: x.Losses, Graphs: x.Graphs, Infeasible: x.Infeasible, Evaluations: x.Evaluations, Seconds: x.Seconds, WorstSeconds: x.WorstSeconds,
		}
		if len(x.Improvements) > 0 {
			row.Median = compare.Median(x.Improvements)
		}
		if low, high, ok := compare.Interval(x.Improvements); ok {
			row.Low, row.High = &low, &high
		}
		if p, ok := rivals.PaperRow(rivals.Task(doc.Task), x.Method); ok {
			improvement, gap := p.Improvement/100, p.Gap/100
			row.PublishedImprovement, row.PublishedGap = &improvement, &gap
		}
		doc.Rows = append(doc.Rows, row)
	}
}
