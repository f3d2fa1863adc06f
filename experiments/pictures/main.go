// Command pictures makes the pictures of README.md and docs from recorded runs: one
// training step under the human expert's placement and under a recorded plan, a row of
// boxes for each device, on one axis of time; and photographs of a report. See README.md
// beside it.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"placer/baselines/rules"
	"placer/graph"
	"placer/internal/browser"
	"placer/internal/fsx"
	"placer/placer/problem"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

func main() {
	if err := draw("experiments/pictures/trfxl4.json", "docs/pictures"); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
	if err := photograph("experiments/pictures/gnmt8", "docs/pictures"); errors.Is(err, browser.ErrNone) {
		fmt.Fprintln(os.Stderr, "pictures: those of the report stay as they are:", err)
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// draw writes step-light.svg and step-dark.svg into folder. The plan is one of
// trfxl4 on four P100s.
func draw(planFile, folder string) error {
	steps, bound, err := simulate(planFile)
	if err != nil {
		return err
	}
	for _, th := range themes() {
		path := filepath.Join(folder, "step-"+th.name+".svg")
		if err := fsx.WriteFile(path, func(w io.Writer) error { return write(w, th, steps, bound) }); err != nil {
			return err
		}
	}
	return nil
}

// step is a simulated training step.
type step struct {
	title    string
	makespan units.Seconds
	boxes    [][]box // by device, in order of time
}

// box is a run of ops of one layer and phase on a device, with hardly a pause.
type box struct {
	start, end units.Seconds
	layer      int32
	phase      graph.Phase
}

// simulate returns the step of the human expert's placement and of the plan, and
// the proven lower bound of both.
func simulate(planFile string) ([]step, units.Seconds, error) {
	p, err := problem.Workload("trfxl4", "p100", 4, problem.Options{})
	if err != nil {
		return nil, 0, err
	}
	file, err := plan.ReadFile(planFile)
	if err != nil {
		return nil, 0, err
	}
	best, err := file.Plan(p.Graph, p.Machine)
	if err != nil {
		return nil, 0, err
	}
	expert := *best
	expert.Decision = plan.Decision{Device: rules.ExpertDevices(&p.Problem), Priority: p.Priority}
	var steps []step
	for _, x := range []struct {
		title string
		plan  *plan.Plan
	}{{"Human expert: one layer on each GPU", &expert}, {"placer: found by simulated annealing", best}} {
		r, err := p.Simulator.Run(x.plan, sim.Options{Trace: true})
		if err != nil {
			return nil, 0, err
		}
		steps = append(steps, step{x.title, r.Makespan, boxes(p.Graph, r.Trace, len(p.Machine.Devices))})
	}
	return steps, units.Seconds(p.Bound), nil
}

// pause is the longest pause within a box: half a pixel.
const pause = 0.15e-3

// boxes joins the ops of a trace that follow each other on a device.
func boxes(g *graph.Graph, t *sim.Trace, devices int) [][]box {
	all := make([][]box, devices)
	for _, x := range t.Ops {
		o := g.Op(x.Op)
		row := &all[x.Device]
		if k := len(*row) - 1; k >= 0 {
			if last := &(*row)[k]; last.layer == o.Layer && last.phase == o.Phase && x.Start-last.end < pause {
				last.end = x.End
				continue
			}
		}
		*row = append(*row, box{x.Start, x.End, o.Layer, o.Phase})
	}
	return all
}
