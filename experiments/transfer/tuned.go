package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"placer/internal/fsx"
	"placer/placer/transfer"
	"placer/plan"
)

// fineTuned fills what is said of fine-tuning, of the seeds that tuned.csv lacks
// and of those that it has.
func (r *row) fineTuned(ctx context.Context, p *plan.Problem, policy *transfer.Policy, tune tuning, folder string) error {
	c := transfer.DefaultTune()
	c.Steps, c.Samples = tune.steps, tune.samples
	all, err := readTuned(folder)
	if err != nil {
		return err
	}
	var best, same []float64
	for k := range tune.seeds {
		p.Seed = uint64(k + 1)
		i := slices.IndexFunc(all, func(x tunedSeed) bool { return x.workload == r.Workload && x.seed == p.Seed })
		known := i >= 0
		if !known {
			i, all = len(all), append(all, tunedSeed{workload: r.Workload, seed: p.Seed})
		}
		if all[i].scratch != reference(r.Scratch) {
			if err := r.tunedOnce(ctx, p, policy, c, &all[i], known); err != nil {
				return err
			}
			if err := writeTuned(folder, all); err != nil {
				return err
			}
		}
		x := all[i]
		r.TunedTook, r.TunedEvaluations = max(r.TunedTook, x.took), max(r.TunedEvaluations, x.evaluations)
		best, same = append(best, x.step), append(same, x.sameAt)
	}
	r.TunedSeeds = float64(tune.seeds)
	r.Tuned, r.TunedLow, r.TunedHigh = spread(best)
	if r.SameAt, _, _ = spread(same); math.IsInf(r.SameAt, 1) {
		r.SameAt = 0
	}
	return nil
}

// tunedOnce fine-tunes under p's seed for x. What is known but against another
// reference runs until it is as good as that of today.
func (r *row) tunedOnce(ctx context.Context, p *plan.Problem, policy *transfer.Policy, c transfer.TuneConfig, x *tunedSeed, known bool) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	x.scratch, x.sameAt = reference(r.Scratch), math.Inf(1)
	p.Report = func(y plan.Progress) {
		if math.IsInf(x.sameAt, 1) && y.Best.Feasible() && y.Best.Seconds <= r.Scratch {
			x.sameAt = float64(y.Evaluations)
			if known {
				stop()
			}
		}
	}
	begin := cpu()
	o, err := transfer.Tuner{Policy: policy, Config: c}.Place(ctx, p)
	if known && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	if now := seconds(o.Score); known && math.Abs(now/x.step-1) > 1e-5 {
		return fmt.Errorf("seed %d came to a step of %.6g s, %.6g s is recorded", p.Seed, now, x.step)
	}
	x.step, x.took, x.evaluations = seconds(o.Score), cpu()-begin, float64(o.Evaluations)
	return nil
}

// tunedSeed is a line of tuned.csv.
type tunedSeed struct {
	workload string
	seed     uint64
	// The step time, CPU seconds of all threads, evaluations, and those at which it
	// was as good as the policy from scratch, infinite where it was not.
	step, took, evaluations, sameAt float64
	scratch                         string // the step time of that policy
}

// reference is how a step time of the policy from scratch is told from others.
func reference(scratch float64) string { return fmt.Sprintf("%.6g", scratch) }

// readTuned returns the lines of folder's tuned.csv, none where there is no file.
func readTuned(folder string) (all []tunedSeed, err error) {
	lines, err := readCSV(filepath.Join(folder, "tuned.csv"))
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	for _, l := range lines[1:] {
		x := tunedSeed{workload: l[0], scratch: l[6]}
		if x.seed, err = strconv.ParseUint(l[1], 10, 64); err != nil {
			return nil, err
		}
		for k, v := range []*float64{&x.step, &x.took, &x.evaluations, &x.sameAt} {
			if *v, err = strconv.ParseFloat(l[2+k], 64); err != nil {
				return nil, err
			}
		}
		all = append(all, x)
	}
	return all, nil
}

func writeTuned(folder string, all []tunedSeed) error {
	return fsx.WriteFile(filepath.Join(folder, "tuned.csv"), func(w io.Writer) error {
		c := csv.NewWriter(w)
		c.Write([]string{"workload", "seed", "step_s", "cpu_seconds", "evaluations", "same_at", "from_scratch_s"})
		for _, x := range all {
			c.Write([]string{x.workload, fmt.Sprint(x.seed), fmt.Sprintf("%.6g", x.step), fmt.Sprintf("%.6g", x.took), fmt.Sprintf("%.6g", x.evaluations), fmt.Sprintf("%.6g", x.sameAt), x.scratch})
		}
		c.Flush()
		return c.Error()
	})
}
