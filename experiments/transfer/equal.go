package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"placer/baselines/rules"
	"placer/baselines/search/anneal"
	"placer/hw"
	"placer/internal/fsx"
	"placer/placer/policy/sequential"
	"placer/placer/pretrained"
	"placer/placer/problem"
	"placer/plan"
	"placer/workloads"
)

// Files of the folder of equal processor time.
const (
	graphsFile = "graphs.tsv"
	equalFile  = "runs.csv"
)

// Ways of placing zero-shot: so many placements made and all judged, as in "direct-16", or
// 16 judged, chosen among hundreds of drafts and improved.
const (
	direct = "direct-"
	drafts = "drafts"
)

// equalRun is a line of runs.csv: a zero-shot placement, and annealing from nothing in
// as much processor time. Both clocks begin when the problem is ready. Times are in
// seconds; the step of a plan that does not fit, or of none, is infinite.
type equalRun struct {
	Set         string  `csv:"set"`
	Workload    string  `csv:"workload"`
	How         string  `csv:"how"`
	Seed        uint64  `csv:"seed"`
	Ops         int     `csv:"ops"`
	Human       float64 `csv:"human_s"`
	ZeroShot    float64 `csv:"zero_shot_s"`
	ZeroTook    float64 `csv:"zero_shot_cpu_seconds"`
	InTime      float64 `csv:"annealing_in_time_s"` // the best that it had when zero-shot was done
	Anneal      float64 `csv:"annealing_s"`         // at its end, with what was under way
	AnnealTook  float64 `csv:"annealing_cpu_seconds"`
	Evaluations int     `csv:"annealing_evaluations"`
}

// equalCase is a line of graphs.tsv.
type equalCase struct {
	set, workload, gpu string
	devices            int
	heldOut            string // the family that the policy has not seen, or "-" for the built-in policy
	ways               string // of placing zero-shot, separated by commas
}

func equalCommand() command {
	return command{"equal", "place the graphs of " + graphsFile + " in the folder zero-shot and anneal them in as much processor time, into " + equalFile + " and " + tableFile, func(f *flag.FlagSet) func([]string) error {
		out, only, seeds := outFlag(f), rowsFlag(f), f.Int("seeds", 6, "seeds of annealing")
		return judged(func(policies map[string]*sequential.Policy) error { return judgeEqual(policies, *out, *only, *seeds) })
	}}
}

// judgeEqual compares zero-shot placement with annealing on the graphs of the folder,
// under the seeds that runs.csv lacks, and writes the table.
func judgeEqual(policies map[string]*sequential.Policy, folder, only string, seeds int) error {
	path := filepath.Join(folder, equalFile)
	runs, err := readCSV[equalRun](path)
	if err != nil {
		return err
	}
	list, err := os.ReadFile(filepath.Join(folder, graphsFile))
	if err != nil {
		return err
	}
	if policies["-"], err = pretrained.Policy(); err != nil {
		return err
	}
	var cases []equalCase
	var names []string
	for line := range bytes.Lines(list) {
		var c equalCase
		if _, err := fmt.Sscan(string(line), &c.set, &c.workload, &c.gpu, &c.devices, &c.heldOut, &c.ways); err != nil {
			return fmt.Errorf("%s: %q: %w", graphsFile, line, err)
		}
		cases, names = append(cases, c), append(names, c.workload)
	}
	asked, err := chosen(only, names)
	if err != nil {
		return err
	}
	for i := range cases {
		c := &cases[i]
		if !asked(c.workload) {
			continue
		}
		policy := policies[c.heldOut]
		if policy == nil {
			return fmt.Errorf("%s: no policy holds out %s", c.workload, c.heldOut)
		}
		if err := c.judge(policy, seeds, &runs, func() error { return writeCSV(path, runs) }); err != nil {
			return fmt.Errorf("%s: %w", c.workload, err)
		}
	}
	return fsx.WriteFile(filepath.Join(folder, tableFile), func(w io.Writer) error { return writeEqual(w, runs) })
}

// judge makes the runs of c that are missing and has each kept.
func (c *equalCase) judge(policy *sequential.Policy, seeds int, runs *[]equalRun, keep func() error) error {
	var p *plan.Problem
	human := 0.0
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		for how := range strings.SplitSeq(c.ways, ",") {
			if slices.ContainsFunc(*runs, func(r equalRun) bool { return r.Workload == c.workload && r.How == how && r.Seed == seed }) {
				continue
			}
			if p == nil {
				var err error
				if p, human, err = c.problem(plan.Place); err != nil {
					return err
				}
			}
			r := equalRun{Set: c.set, Workload: c.workload, How: how, Seed: seed, Ops: p.Graph.NumOps(), Human: human}
			if err := r.measure(*p, policy); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%s, %s, seed %d: zero-shot %.4g ms in %.3f CPU s, annealing %.4g ms, %.4g ms in %.3f\n", r.Workload, r.How, r.Seed, 1e3*r.ZeroShot, r.ZeroTook, 1e3*r.InTime, 1e3*r.Anneal, r.AnnealTook)
			*runs = append(*runs, r)
			if err := keep(); err != nil {
				return err
			}
		}
	}
	return nil
}

// problem returns c's with these tasks, and the expert's step.
func (c *equalCase) problem(tasks plan.Tasks) (*plan.Problem, float64, error) {
	g, err := workloads.Build(c.workload)
	if err != nil {
		return nil, 0, err
	}
	m, err := hw.Take(c.gpu, c.devices, false)
	if err != nil {
		return nil, 0, err
	}
	p, err := problem.New(problem.Source{Graph: g}, m, problem.Options{Tasks: tasks})
	if err != nil {
		return nil, 0, err
	}
	expert, err := rules.Expert().Place(context.Background(), &p.Problem)
	if err != nil {
		return nil, 0, err
	}
	return &p.Problem, seconds(expert.Score), nil
}

// measure places p zero-shot and then anneals for as long.
func (r *equalRun) measure(p plan.Problem, policy *sequential.Policy) error {
	p.Seed = r.Seed
	if err := r.zeroShot(&p, policy); err != nil {
		return err
	}
	runtime.GC()
	start := cpu()
	p.Clock = func() float64 { return cpu() - start }
	p.Budget = plan.Budget{Seconds: r.ZeroTook}
	r.InTime = math.Inf(1)
	p.Report = func(x plan.Progress) {
		if p.Clock() <= r.ZeroTook {
			r.InTime = seconds(x.Best)
		}
	}
	o, err := anneal.Placer{Workers: 1}.Place(context.Background(), &p)
	if err != nil {
		return err
	}
	r.Anneal, r.AnnealTook, r.Evaluations = seconds(o.Score), cpu()-start, o.Evaluations
	return nil
}

// zeroShot places p zero-shot.
func (r *equalRun) zeroShot(p *plan.Problem, policy *sequential.Policy) error {
	place, made := policy.ZeroShot, sequential.DefaultSamples
	if number, ok := strings.CutPrefix(r.How, direct); ok {
		var err error
		if made, err = strconv.Atoi(number); err != nil {
			return fmt.Errorf("way of placing %q: %w", r.How, err)
		}
		place = policy.Direct
	} else if r.How != drafts {
		return fmt.Errorf("way of placing %q, want %sN or %s", r.How, direct, drafts)
	}
	runtime.GC() // what came before is not this run's to clear away
	start := cpu()
	f, err := sequential.NewFeatures(p)
	if err != nil {
		return err
	}
	samples, err := place(context.Background(), f, made)
	if err != nil {
		return err
	}
	r.ZeroShot, r.ZeroTook = seconds(sequential.Best(samples).Score), cpu()-start
	return nil
}

// writeEqual writes a table for each set and way: medians over the seeds and their
// extremes, reductions against the human expert.
func writeEqual(w io.Writer, runs []equalRun) error {
	type group struct{ set, how string }
	var groups []group
	for i := range runs {
		if g := (group{runs[i].Set, runs[i].How}); !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	for _, g := range groups {
		of, names := map[string][]*equalRun{}, []string(nil)
		for i := range runs {
			if r := &runs[i]; r.Set == g.set && r.How == g.how {
				if of[r.Workload] == nil {
					names = append(names, r.Workload)
				}
				of[r.Workload] = append(of[r.Workload], r)
			}
		}
		fmt.Fprintf(w, "%s, %s:\n\n| graph | ops | seeds | zero-shot | lowest to highest | CPU s | annealing by then | lowest to highest | zero-shot's step shorter by | annealing at its end | CPU s | evaluations | shorter by |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n", g.set, g.how)
		sum, shorter, atEnd := [2]float64{}, 0, 0
		for _, name := range names {
			rs := of[name]
			median := func(x func(*equalRun) float64) (middle, low, high float64) {
				var all []float64
				for _, r := range rs {
					all = append(all, x(r))
				}
				return spread(all)
			}
			z, zLow, zHigh := median(func(r *equalRun) float64 { return percent(r.ZeroShot, r.Human) })
			a, aLow, aHigh := median(func(r *equalRun) float64 { return percent(r.InTime, r.Human) })
			e, _, _ := median(func(r *equalRun) float64 { return percent(r.Anneal, r.Human) })
			took, _, _ := median(func(r *equalRun) float64 { return r.ZeroTook })
			annealed, _, _ := median(func(r *equalRun) float64 { return r.AnnealTook })
			evaluations, _, _ := median(func(r *equalRun) float64 { return float64(r.Evaluations) })
			saved, savedAtEnd := 100*(1-(100-z)/(100-a)), 100*(1-(100-z)/(100-e))
			if saved > 0 {
				shorter++
			}
			if savedAtEnd > 0 {
				atEnd++
			}
			sum[0] += math.Log(1 - z/100)
			sum[1] += math.Log(1 - e/100)
			fmt.Fprintf(w, "| %s | %d | %d | %s | %s to %s | %.3f | %s | %s to %s | %s | %s | %.3f | %.0f | %s |\n", name, rs[0].Ops, len(rs), share(z), share(zLow), share(zHigh), took, plans(a), plans(aLow), plans(aHigh), ahead(saved), plans(e), annealed, evaluations, share(savedAtEnd))
		}
		n := float64(len(names))
		fmt.Fprintf(w, "| geometric mean | | | %s | | | | | | %s | | | %s |\n\nZero-shot is shorter than what annealing had by then on %d of %d, than what it ended with on %d.\n\n", share(100*(1-math.Exp(sum[0]/n))), share(100*(1-math.Exp(sum[1]/n))), share(100*(1-math.Exp((sum[0]-sum[1])/n))), shorter, len(names), atEnd)
	}
	return nil
}

// ahead writes by how much a step is shorter, in percent, than another if there is one.
func ahead(percent float64) string {
	if percent == 100 {
		return "-"
	}
	return share(percent)
}

// plans writes a reduction in percent, or that there is no plan.
func plans(percent float64) string {
	if math.IsInf(percent, 0) {
		return "no plan"
	}
	return share(percent)
}
