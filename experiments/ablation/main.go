// Command ablation trains the policy with one part left out at a time, on several
// workloads and seeds at one budget in evaluations, and prints medians with their
// intervals. See README.md beside it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"placer/baselines/rules"
	"placer/graph/unit"
	"placer/placer/policy/goone"
	"placer/placer/problem"
	"placer/plan"
)

// variants are changes to the default policy.
var variants = []struct {
	name   string
	change func(*goone.Config)
}{
	{"default", func(*goone.Config) {}},
	{"no recurrence", func(c *goone.Config) { c.Recurrence = false }},
	{"no modulation", func(c *goone.Config) { c.Modulation = false }},
	{"no attention", func(c *goone.Config) { c.Attention = false }},
	{"T = 2", func(c *goone.Config) { c.Iterations = 2 }},
	{"no curriculum", func(c *goone.Config) { c.Curriculum = false }},
	{"no free logits", func(c *goone.Config) { c.InstanceRate = 0 }},
	{"no free logits, no recurrence", func(c *goone.Config) { c.InstanceRate, c.Recurrence = 0, false }},
	{"no free logits, no modulation", func(c *goone.Config) { c.InstanceRate, c.Modulation = 0, false }},
	{"no free logits, no attention", func(c *goone.Config) { c.InstanceRate, c.Attention = 0, false }},
	{"no free logits, no identity", func(c *goone.Config) { c.InstanceRate, c.Identity = 0, 0 }},
	{"no free logits, T = 2", func(c *goone.Config) { c.InstanceRate, c.Iterations = 0, 2 }},
}

// result is one run.
type result struct {
	Workload, Variant string
	Seed              uint64
	StepTime, Human   float64 // seconds
}

func main() {
	list := flag.String("workloads", "trfxl2:2", "workload:gpus, comma-separated")
	evaluations := flag.Int("evaluations", 2000, "evaluations of each run")
	seeds := flag.Int("seeds", 6, "seeds")
	level := flag.String("granularity", "chain", "op, cell, segment or chain")
	segment := flag.Int("segment", 32, "rows of a segment")
	skip := flag.String("skip", "", "variants to leave out, semicolon-separated")
	out := flag.String("o", "ablation.json", "results, one JSON document a line, once all are there")
	flag.Parse()
	err := check(*seeds, *skip, flag.Args())
	if err == nil {
		err = run(*list, *evaluations, *seeds, *level, *segment, strings.Split(*skip, ";"), *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "ablation:", err)
		os.Exit(1)
	}
}

// check returns an error for what would be run as something else, or not at all.
func check(seeds int, skip string, left []string) error {
	if len(left) > 0 {
		return fmt.Errorf("%q: want flags alone", left)
	}
	if seeds < 1 {
		return fmt.Errorf("-seeds %d: want at least 1", seeds)
	}
	if skip == "" {
		return nil
	}
	var names []string
	for _, v := range variants {
		names = append(names, v.name)
	}
	for name := range strings.SplitSeq(skip, ";") {
		if !slices.Contains(names, name) {
			return fmt.Errorf("-skip %q: want some of %s", name, strings.Join(names, "; "))
		}
	}
	return nil
}

// confidence is that with which the lowest and the highest of so many runs hold the median.
func confidence(seeds int) float64 { return 1 - math.Pow(2, 1-float64(seeds)) }

// run writes the results to out once all are there.
func run(list string, evaluations, seeds int, level string, segment int, skip []string, out string) error {
	l, err := unit.ParseLevel(level)
	if err != nil {
		return err
	}
	file, err := os.Create(out + ".new")
	if err != nil {
		return err
	}
	defer file.Close()
	for _, item := range strings.Split(list, ",") {
		name, gpus, _ := strings.Cut(item, ":")
		devices, err := strconv.Atoi(gpus)
		if err != nil {
			return fmt.Errorf("%s: want workload:gpus", item)
		}
		whole, err := problem.Workload(name, "p100", devices, problem.Options{})
		if err != nil {
			return err
		}
		p := &whole.Problem
		p.Units = p.Units.WithoutPartialGradients() // as recorded
		h, err := rules.Expert().Place(context.Background(), p)
		if err != nil {
			return err
		}
		base := p.Evaluator.Evaluate(plan.Decision{Device: h.Device, Priority: p.Priority}).Value
		fmt.Printf("\n%s on %d P100, %d evaluations, granularity %s, segments of %d; human %.1f ms\n\n| variant | median | interval (%.1f%%) | reduction |\n|---|---:|---:|---:|\n", name, devices, evaluations, level, segment, base*1e3, 100*confidence(seeds))
		for _, v := range variants {
			if slices.Contains(skip, v.name) {
				continue
			}
			times := make([]float64, seeds)
			errs := make([]error, seeds)
			var wait sync.WaitGroup
			slots := make(chan struct{}, runtime.NumCPU())
			for s := range times {
				wait.Go(func() {
					slots <- struct{}{}
					defer func() { <-slots }()
					times[s], errs[s] = train(*p, l, segment, v.change, evaluations, uint64(s+1))
				})
			}
			wait.Wait()
			for s, t := range times {
				if errs[s] != nil {
					return fmt.Errorf("%s, %s, seed %d: %w", name, v.name, s+1, errs[s])
				}
				if err := json.NewEncoder(file).Encode(result{name, v.name, uint64(s + 1), t, base}); err != nil {
					return err
				}
			}
			slices.Sort(times)
			median := (times[(seeds-1)/2] + times[seeds/2]) / 2
			fmt.Printf("| %s | %.1f ms | %.1f to %.1f ms | %.1f%% |\n", v.name, median*1e3, times[0]*1e3, times[seeds-1]*1e3, (1-median/base)*100)
		}
	}
	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(out+".new", out)
}

func train(p plan.Problem, l unit.Level, segment int, change func(*goone.Config), evaluations int, seed uint64) (float64, error) {
	c := goone.Default()
	c.Level, c.Segment = l, segment
	change(&c)
	policy, err := goone.New(c)
	if err != nil {
		return 0, err
	}
	p.Evaluator, p.Seed, p.Budget = p.Evaluator.Clone(), seed, plan.Budget{Evaluations: evaluations}
	o, err := policy.Place(context.Background(), &p)
	if err != nil {
		return 0, err
	}
	return o.Score.Value, nil
}
