package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"placer/internal/fsx"
	"placer/placer/policy/sequential"
	"placer/plan"
)

// Files of what fine-tuning through the network comes to.
const (
	ppoFile  = "ppo.csv"
	ppoTable = "ppo.md"
)

// ppoSeed is a line of ppo.csv: a run of fine-tuned-ppo in 49 steps.
type ppoSeed struct {
	Workload    string  `csv:"workload"`
	Seed        uint64  `csv:"seed"`
	Step        float64 `csv:"step_s"`
	Took        float64 `csv:"cpu_seconds"` // of all threads
	Evaluations float64 `csv:"evaluations"`
	First       float64 `csv:"zero_shot_s"` // the best of the zero-shot samples that it begins with
	SameAt      float64 `csv:"same_at"`     // evaluations at which it was as good as the policy from scratch, infinite where it was not
	Scratch     string  `csv:"from_scratch_s"`
}

func ppoCommand() command {
	return command{"ppo", "fine-tune through the network, on the rows of results.csv, into ppo.csv and ppo.md", func(f *flag.FlagSet) func([]string) error {
		out, only, seeds := outFlag(f), rowsFlag(f), f.Int("seeds", 1, "seeds of fine-tuning")
		return judged(func(policies map[string]*sequential.Policy) error {
			return runs[ppoSeed]{ppoFile, ppoTable, writePPO}.judge(policies, *out, *only, *seeds)
		})
	}}
}

func (x ppoSeed) of() (workload string, seed uint64) { return x.Workload, x.Seed }

// tune fine-tunes through the network on r.
func (x ppoSeed) tune(r *row, policy *sequential.Policy, seed uint64) (ppoSeed, error) {
	x = ppoSeed{Workload: r.Workload, Seed: seed, SameAt: math.Inf(1), Scratch: reference(r.Scratch)}
	run, err := r.tuneByPPO(policy, plan.Place, seed, func(y plan.Progress) {
		if math.IsInf(x.SameAt, 1) && y.Best.Value <= r.Scratch {
			x.SameAt = float64(y.Evaluations)
		}
	})
	x.Step, x.First, x.Took, x.Evaluations = run.step, run.first, run.took, run.evaluations
	return x, err
}

// seeded is a line of a file of runs, one for each seed of a row.
type seeded[T any] interface {
	of() (workload string, seed uint64)
	tune(r *row, policy *sequential.Policy, seed uint64) (T, error)
}

// runs are those of a file, and the table that is written of them.
type runs[T seeded[T]] struct {
	file, table string
	write       func(w io.Writer, rows []row, all []T) error
}

// judge makes a run on each row that is asked for, of those that results.csv has, by the policy that has not
// seen it, under each seed that the file in out lacks, and writes the table of all.
func (f runs[T]) judge(policies map[string]*sequential.Policy, out, only string, seeds int) error {
	rows, err := readCSV[row](filepath.Join("experiments/transfer", resultsFile))
	if err != nil {
		return err
	}
	path := filepath.Join(out, f.file)
	all, err := readCSV[T](path)
	if err != nil {
		return err
	}
	asked, err := chosen(only, workloadsOf(rows))
	if err != nil {
		return err
	}
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		for i := range rows {
			r := &rows[i]
			if !asked(r.Workload) || slices.ContainsFunc(all, func(x T) bool { w, k := x.of(); return w == r.Workload && k == seed }) {
				continue
			}
			policy := policies[r.family()]
			if policy == nil {
				return fmt.Errorf("%s: no policy holds out %s", r.Workload, r.family())
			}
			var x T
			if x, err = x.tune(r, policy, seed); err != nil {
				return fmt.Errorf("%s: %w", r.Workload, err)
			}
			all = append(all, x)
			if err := writeCSV(path, all); err != nil {
				return err
			}
		}
	}
	if len(all) == 0 {
		return errors.New("no row was judged")
	}
	return fsx.WriteFile(filepath.Join(out, f.table), func(w io.Writer) error { return f.write(w, rows, all) })
}

// ppoRun is what a run of fine-tuned-ppo in 49 steps came to.
type ppoRun struct {
	step, first float64 // seconds, of the best and of the best zero-shot sample
	took        float64 // processor seconds of all threads
	evaluations float64
}

// tuneByPPO fine-tunes policy on r under seed. It tells report, which may be nil, of plans
// that fit.
func (r *row) tuneByPPO(policy *sequential.Policy, tasks plan.Tasks, seed uint64, report func(plan.Progress)) (x ppoRun, err error) {
	c := equalCase{workload: r.Workload, gpu: "p100", devices: r.Devices}
	p, _, err := c.problem(tasks)
	if err != nil {
		return x, err
	}
	p.Seed = seed
	p.Report = func(y plan.Progress) {
		if !y.Best.Feasible() {
			return
		}
		if x.first == 0 {
			x.first = y.Best.Value
		}
		if report != nil {
			report(y)
		}
	}
	begin := cpu()
	o, err := sequential.PPOTuner{Policy: policy, Config: sequential.DefaultPPO()}.Place(context.Background(), p)
	if err != nil {
		return x, err
	}
	x.step, x.took, x.evaluations = seconds(o.Score), cpu()-begin, float64(o.Evaluations)
	fmt.Fprintf(os.Stderr, "%-11s seed %d: %.1f%% from %.1f%% in %.0f evaluations, %.0f CPU s\n", r.Workload, seed, percent(x.step, r.Human), percent(x.first, r.Human), x.evaluations, x.took)
	return x, nil
}

// writePPO writes a line for each row that was run, medians over its seeds.
func writePPO(w io.Writer, rows []row, all []ppoSeed) error {
	fmt.Fprintln(w, "| graph | GPUs | seeds | zero-shot | fine-tuned-ppo | lowest to highest | evaluations | CPU s | five minutes of search | step longer by | from scratch | its evaluations | evaluations to the same | times fewer |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	sums, n, near, tenth := [3]float64{}, 0, 0, 0
	for i := range rows {
		r := &rows[i]
		var first, step, evaluations, took, same []float64
		for _, x := range all {
			if x.Workload == r.Workload {
				first, step, evaluations, took, same = append(first, x.First), append(step, x.Step), append(evaluations, x.Evaluations), append(took, x.Took), append(same, x.SameAt)
			}
		}
		if len(step) == 0 {
			continue
		}
		n++
		f, _, _ := spread(first)
		s, low, high := spread(step)
		e, _, _ := spread(evaluations)
		c, _, _ := spread(took)
		at, _, _ := spread(same)
		for k, v := range []float64{f, s, r.Longer} {
			sums[k] += math.Log(v / r.Human)
		}
		longer := 100 * (s/r.Longer - 1)
		if longer <= 3 {
			near++
		}
		reached, fewer := "not reached", "-"
		if !math.IsInf(at, 1) {
			times := r.ScratchEvaluations / at
			reached, fewer = fmt.Sprintf("%.0f", at), fmt.Sprintf("%.1f", times)
			if times >= 10 {
				tenth++
			}
		}
		fmt.Fprintf(w, "| %s | %d | %d | %s | %s | %s to %s | %.0f | %.0f | %s | %s | %s | %.0f | %s | %s |\n", r.Workload, r.Devices, len(step), share(percent(f, r.Human)), share(percent(s, r.Human)),
			share(percent(high, r.Human)), share(percent(low, r.Human)), e, c, share(percent(r.Longer, r.Human)), share(longer), share(percent(r.Scratch, r.Human)), r.ScratchEvaluations, reached, fewer)
	}
	mean := func(k int) string { return share(100 * (1 - math.Exp(sums[k]/float64(max(n, 1))))) }
	_, err := fmt.Fprintf(w, "| geometric mean | | | %s | %s | | | | %s | %s | | | | |\n\nWithin 3%% of five minutes of search on %d of %d rows; as good as the policy from scratch in at most a tenth of its evaluations on %d.\n",
		mean(0), mean(1), mean(2), share(100*(math.Exp((sums[1]-sums[2])/float64(max(n, 1)))-1)), near, n, tenth)
	return err
}
