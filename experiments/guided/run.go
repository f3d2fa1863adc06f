package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"syscall"

	"placer/baselines/search/anneal"
	"placer/placer/methods"
	"placer/plan"
)

// Ways of choosing moves.
const (
	chance = "chance"
	guided = "guided"
)

// What searches.
const (
	annealing = "annealing"
	portfolio = "portfolio"
)

// run is a line of runs.tsv. Times are in seconds; the step of a plan that does not fit is
// infinite.
type run struct {
	graph       string
	budget      float64 // processor time
	seed        int
	how         string
	step, human float64
	evaluations int
	spent       float64 // processor time, with the last evaluation
}

func (r *run) key() string { return fmt.Sprintf("%s\t%g\t%d\t%s", r.graph, r.budget, r.seed, r.how) }

func (r *run) line() string {
	return fmt.Sprintf("%s\t%.6g\t%.6g\t%d\t%.2f\n", r.key(), r.step, r.human, r.evaluations, r.spent)
}

// read returns the lines of runs.tsv, none where there is no file.
func read(path string) (runs []run, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r run
		if _, err := fmt.Sscan(lines.Text(), &r.graph, &r.budget, &r.seed, &r.how, &r.step, &r.human, &r.evaluations, &r.spent); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", path, lines.Text(), err)
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// search searches c.
func (r *run) search(ctx context.Context, e *experiment, c *searched) error {
	var g methods.Guides
	if r.how == guided && c.network.Tasks() == plan.Place {
		g.Place = c.network
	} else if r.how == guided {
		g.All = c.network
	}
	var by plan.Placer = anneal.Placer{Workers: 1, Guide: g.Place, JointGuide: g.All}
	if e.search == portfolio {
		of := methods.Of(c.Problem)
		of.FromScratch = true
		by = methods.NewPortfolio(of, methods.Default(), g, plan.Decision{})
	}
	q := c.Problem.Problem
	start := processor()
	q.Clock = func() float64 { return processor() - start }
	q.Budget, q.Seed = plan.Budget{Seconds: r.budget}, uint64(r.seed)
	o, err := by.Place(ctx, &q)
	if err != nil {
		return err
	}
	r.step, r.human, r.evaluations, r.spent = seconds(o.Score), c.human, o.Evaluations, processor()-start
	return nil
}

// seconds is the step of a plan, infinite where it does not fit.
func seconds(s plan.Score) float64 {
	if !s.Feasible() {
		return math.Inf(1)
	}
	return s.Value
}

// processor returns the processor time that the program has used, in seconds.
func processor() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + 1e-6*float64(u.Utime.Usec+u.Stime.Usec)
}
