package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"placer/baselines/rules"
	"placer/placer/policy/sequential"
	"placer/plan"
)

// judge fills what r has not got; folder holds tuned.csv.
func (r *row) judge(policy *sequential.Policy, seeds int, tune tuning, folder string) error {
	p, err := sequential.Case{Workload: r.Workload, GPU: "p100", Devices: r.Devices}.Problem()
	if err != nil {
		return err
	}
	ctx := context.Background()
	h, err := rules.Expert().Place(ctx, p)
	if err != nil {
		return err
	}
	r.Human = h.Score.Value
	if err := r.recorded(); err != nil {
		return err
	}
	if r.Direct == 0 {
		if err := r.direct(ctx, p, policy); err != nil {
			return err
		}
	}
	if r.Greedy == 0 {
		if err := r.zeroShot(ctx, p, policy, seeds); err != nil {
			return err
		}
	}
	if tune.steps == 0 || r.TunedSeeds >= float64(tune.seeds) {
		return nil
	}
	return r.fineTuned(ctx, p, policy, tune, folder)
}

// zeroShot fills what is said of the policy as it is, and of an untrained one of the same
// network and inputs.
func (r *row) zeroShot(ctx context.Context, p *plan.Problem, policy *sequential.Policy, seeds int) error {
	untrained, err := sequential.NewPolicy(policy.Config(), rand.New(rand.NewPCG(1, 0)))
	if err != nil {
		return err
	}
	var best, without []float64
	for k := range seeds {
		p.Seed = uint64(k + 1)
		begin := cpu()
		w, err := sequential.NewFeatures(p)
		if err != nil {
			return err
		}
		samples, err := policy.ZeroShot(ctx, w, sequential.DefaultSamples)
		if err != nil {
			return err
		}
		if k == 0 {
			r.Took = cpu() - begin
			r.Greedy = seconds(samples[0].Score)
			r.Distance, r.Reach = policy.Distance(w), policy.Limit()
		}
		best = append(best, seconds(sequential.Best(samples).Score))
		if samples, err = untrained.ZeroShot(ctx, w, sequential.DefaultSamples); err != nil {
			return err
		}
		without = append(without, seconds(sequential.Best(samples).Score))
	}
	r.Best, r.BestLow, r.BestHigh = spread(best)
	r.Untrained, _, _ = spread(without)
	return nil
}

// direct fills what is said of placements made and all judged. Nothing in them is drawn.
func (r *row) direct(ctx context.Context, p *plan.Problem, policy *sequential.Policy) error {
	begin := cpu()
	w, err := sequential.NewFeatures(p)
	if err != nil {
		return err
	}
	samples, err := policy.Direct(ctx, w, sequential.DefaultSamples)
	if err != nil {
		return err
	}
	r.Direct, r.DirectTook = seconds(sequential.Best(samples).Score), cpu()-begin
	if policy.Config().Unguided {
		return nil // it knows no priors
	}
	if samples, err = policy.WithoutLearning().Direct(ctx, w, sequential.DefaultSamples); err != nil {
		return err
	}
	r.DirectPriors = seconds(sequential.Best(samples).Score)
	return nil
}

// spread returns the median of x, the lowest and the highest.
func spread(x []float64) (median, low, high float64) {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2, x[0], x[len(x)-1]
}

// cpu returns the processor time of this process, in seconds: what else the
// machine does is not the policy's doing.
func cpu() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// seconds is the step time, infinite where the placement does not fit.
func seconds(s plan.Score) float64 {
	if !s.Feasible() {
		return math.Inf(1)
	}
	return s.Value
}

// method is a row of a recorded search.
type method struct {
	Method      string  `json:"method"`
	StepTime    float64 `json:"step_time_s"`
	Evaluations int     `json:"evaluations"`
}

// readSearch returns the best of a search recorded in folder and its rows.
func (r *row) readSearch(folder string) (best float64, rows []method, err error) {
	data, err := os.ReadFile(filepath.Join(folder, r.Workload+".json"))
	if err != nil {
		return 0, nil, err
	}
	var doc struct {
		Best method   `json:"best"`
		Rows []method `json:"rows"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return 0, nil, fmt.Errorf("%s: %s: %w", folder, r.Workload, err)
	}
	return doc.Best.StepTime, doc.Rows, nil
}

// recorded takes the recorded searches: their best, and of the one of two minutes
// the policy that was trained from scratch. The one of five minutes may lack.
func (r *row) recorded() error {
	var rows []method
	var err error
	if r.Search, rows, err = r.readSearch("experiments/table2"); err != nil {
		return err
	}
	for _, m := range rows {
		if m.Method == "GO-one" {
			r.Scratch, r.ScratchEvaluations = m.StepTime, float64(m.Evaluations)
		}
	}
	if r.Longer, _, err = r.readSearch("experiments/table2/five-minutes"); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
