package main

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"placer/placer/policy/sequential"
	"placer/plan"
)

// fineTuned fills what is said of fine-tuning, of the seeds that tuned.csv lacks
// and of those that it has.
func (r *row) fineTuned(ctx context.Context, p *plan.Problem, policy *sequential.Policy, tune tuning, folder string) error {
	c := sequential.DefaultTune()
	c.Steps, c.Samples = tune.steps, tune.samples
	all, err := readCSV[tunedSeed](filepath.Join(folder, tunedFile))
	if err != nil {
		return err
	}
	var best, same []float64
	for k := range tune.seeds {
		p.Seed = uint64(k + 1)
		i := slices.IndexFunc(all, func(x tunedSeed) bool { return x.Workload == r.Workload && x.Seed == p.Seed })
		known := i >= 0
		if !known {
			i, all = len(all), append(all, tunedSeed{Workload: r.Workload, Seed: p.Seed})
		}
		if all[i].Scratch != reference(r.Scratch) {
			if err := r.tunedOnce(ctx, p, policy, c, &all[i], known); err != nil {
				return err
			}
			if err := writeCSV(filepath.Join(folder, tunedFile), all); err != nil {
				return err
			}
		}
		x := all[i]
		r.TunedTook, r.TunedEvaluations = max(r.TunedTook, x.Took), max(r.TunedEvaluations, x.Evaluations)
		best, same = append(best, x.Step), append(same, x.SameAt)
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
func (r *row) tunedOnce(ctx context.Context, p *plan.Problem, policy *sequential.Policy, c sequential.TuneConfig, x *tunedSeed, known bool) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	x.Scratch, x.SameAt = reference(r.Scratch), math.Inf(1)
	p.Report = func(y plan.Progress) {
		if math.IsInf(x.SameAt, 1) && y.Best.Feasible() && y.Best.Value <= r.Scratch {
			x.SameAt = float64(y.Evaluations)
			if known {
				stop()
			}
		}
	}
	begin := cpu()
	o, err := sequential.Tuner{Policy: policy, Config: c}.Place(ctx, p)
	if known && ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	if now := seconds(o.Score); known && math.Abs(now/x.Step-1) > 1e-5 {
		return fmt.Errorf("seed %d came to a step of %.6g s, %.6g s is recorded", p.Seed, now, x.Step)
	}
	x.Step, x.Took, x.Evaluations = seconds(o.Score), cpu()-begin, float64(o.Evaluations)
	return nil
}

// tunedSeed is a line of tuned.csv.
type tunedSeed struct {
	Workload    string  `csv:"workload"`
	Seed        uint64  `csv:"seed"`
	Step        float64 `csv:"step_s"`
	Took        float64 `csv:"cpu_seconds"` // of all threads
	Evaluations float64 `csv:"evaluations"`
	SameAt      float64 `csv:"same_at"`        // evaluations at which it was as good as the policy from scratch, infinite where it was not
	Scratch     string  `csv:"from_scratch_s"` // the step time of that policy
}

// reference is how a step time of the policy from scratch is told from others.
func reference(scratch float64) string { return figure(scratch) }
