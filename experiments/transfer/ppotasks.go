package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"

	"placer/placer/methods"
	"placer/placer/policy/sequential"
	"placer/placer/problem"
	"placer/plan"
)

// Files of what fine-tuning through the network comes to where all tasks are decided.
const (
	ppoTasksFile  = "ppo-all-tasks.csv"
	ppoTasksTable = "ppo-all-tasks.md"
)

// ppoTasksSeed is a line of ppo-all-tasks.csv: a run of fine-tuned-ppo in 49 steps, and the
// search of all tasks, from nothing, in as much processor time.
type ppoTasksSeed struct {
	Workload    string  `csv:"workload"`
	Seed        uint64  `csv:"seed"`
	Step        float64 `csv:"step_s"`
	Took        float64 `csv:"cpu_seconds"` // of all threads
	Evaluations float64 `csv:"evaluations"`
	First       float64 `csv:"zero_shot_s"` // the best of the zero-shot samples that it begins with
	Search      float64 `csv:"search_s"`
	SearchTook  float64 `csv:"search_cpu_seconds"`
}

func ppoTasksCommand() command {
	return command{"ppo-tasks", "fine-tune through the network and search, all tasks, on the rows of results.csv, into " + ppoTasksFile + " and " + ppoTasksTable, func(f *flag.FlagSet) func([]string) error {
		out, only, seeds := outFlag(f), rowsFlag(f), f.Int("seeds", 1, "seeds of each row")
		return judged(func(policies map[string]*sequential.Policy) error {
			return runs[ppoTasksSeed]{ppoTasksFile, ppoTasksTable, writePPOTasks}.judge(policies, *out, *only, *seeds)
		})
	}}
}

func (x ppoTasksSeed) of() (workload string, seed uint64) { return x.Workload, x.Seed }

// tune fine-tunes through the network on r and searches it.
func (x ppoTasksSeed) tune(r *row, policy *sequential.Policy, seed uint64) (ppoTasksSeed, error) {
	run, err := r.tuneByPPO(policy, plan.AllTasks, seed, nil)
	if err != nil {
		return x, err
	}
	x = ppoTasksSeed{Workload: r.Workload, Seed: seed, Step: run.step, Took: run.took, Evaluations: run.evaluations, First: run.first}
	return x, x.search(r)
}

// search searches r from nothing that is pretrained, in as much processor time as fine-tuning
// took.
func (x *ppoTasksSeed) search(r *row) error {
	c := equalCase{workload: r.Workload, gpu: "p100", devices: r.Devices}
	p, _, err := c.problem(plan.AllTasks)
	if err != nil {
		return err
	}
	begin := cpu()
	p.Seed, p.Clock, p.Budget.Seconds = x.Seed, func() float64 { return cpu() - begin }, x.Took
	of := methods.Of(&problem.Problem{Problem: *p})
	of.FromScratch = true
	o, err := methods.NewPortfolio(of, methods.Default(), methods.Guides{}, plan.Decision{}).Place(context.Background(), p)
	if err != nil {
		return err
	}
	x.Search, x.SearchTook = seconds(o.Score), cpu()-begin
	fmt.Fprintf(os.Stderr, "%-11s seed %d: the search %.1f%% in %.0f CPU s\n", x.Workload, x.Seed, percent(x.Search, r.Human), x.SearchTook)
	return nil
}

// writePPOTasks writes a line for each row that was run, medians over its seeds.
func writePPOTasks(w io.Writer, rows []row, all []ppoTasksSeed) error {
	fmt.Fprintln(w, "| graph | GPUs | seeds | zero-shot | fine-tuned-ppo | lowest to highest | evaluations | CPU s | search from nothing | lowest to highest | CPU s | step longer by |\n|---|---|---|---|---|---|---|---|---|---|---|---|")
	sums, n := [3]float64{}, 0
	for i := range rows {
		r := &rows[i]
		var first, step, evaluations, took, searched, searchTook []float64
		for _, x := range all {
			if x.Workload == r.Workload {
				first, step, evaluations, took = append(first, x.First), append(step, x.Step), append(evaluations, x.Evaluations), append(took, x.Took)
				searched, searchTook = append(searched, x.Search), append(searchTook, x.SearchTook)
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
		found, foundLow, foundHigh := spread(searched)
		d, _, _ := spread(searchTook)
		for k, v := range []float64{f, s, found} {
			sums[k] += math.Log(v / r.Human)
		}
		of := func(x float64) string { return share(percent(x, r.Human)) }
		fmt.Fprintf(w, "| %s | %d | %d | %s | %s | %s to %s | %.0f | %.0f | %s | %s to %s | %.0f | %s |\n", r.Workload, r.Devices, len(step), of(f), of(s), of(high), of(low), e, c, of(found), of(foundHigh), of(foundLow), d, share(100*(s/found-1)))
	}
	mean := func(k int) string { return share(100 * (1 - math.Exp(sums[k]/float64(max(n, 1))))) }
	_, err := fmt.Fprintf(w, "| geometric mean | | | %s | %s | | | | %s | | | %s |\n", mean(0), mean(1), mean(2), share(100*(math.Exp((sums[1]-sums[2])/float64(max(n, 1)))-1)))
	return err
}
