// Command learned-rivals trains RL-2017, HDP and GDP on several workloads and
// seeds at one budget in evaluations and records how far each comes: the mean step
// time of the placements it samples in its first evaluations and in its last, and
// the best it finds, beside the best of as many random placements. See README.md
// beside it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"placer/baselines/learned/gdp"
	"placer/baselines/learned/hdp"
	"placer/baselines/learned/reinforce"
	"placer/baselines/learned/rl2017"
	"placer/baselines/rules"
	"placer/graph/unit"
	"placer/internal/compare"
	"placer/internal/fsx"
	"placer/placer/problem"
	"placer/plan"
)

// sample is the step time of a round's placements.
type sample struct {
	evaluations, fit int
	seconds          float64
}

// rivals make the methods, each with a function that is told of every round.
var rivals = []struct {
	name string
	make func(observe func(sample)) plan.Placer
}{
	{"rl-2017", func(observe func(sample)) plan.Placer {
		return rl2017.Placer{Config: rl2017.Default(), Observe: of(observe)}
	}},
	{"hdp", func(observe func(sample)) plan.Placer {
		return hdp.Placer{Config: hdp.Default(), Observe: of(observe)}
	}},
	{"hdp of ops", func(observe func(sample)) plan.Placer {
		c := hdp.Default()
		c.Level = unit.Op
		return hdp.Placer{Config: c, Observe: of(observe)}
	}},
	{"GDP-one", func(observe func(sample)) plan.Placer {
		return gdp.PlacerOne{Config: gdp.One(), Observe: func(r gdp.Round) { observe(sample{r.Evaluations, r.Fit, r.Seconds}) }}
	}},
}

func of(observe func(sample)) func(reinforce.Round) {
	return func(r reinforce.Round) { observe(sample{r.Evaluations, r.Fit, r.Seconds}) }
}

// Cell says which run it is.
type Cell struct {
	Workload, Method  string
	GPUs, Evaluations int
	Seed              uint64
}

// result is one run. Times are in seconds; First and Last are means over the
// first and the last tenth of the evaluations, FirstRound over the first round. 0
// stands for what does not fit.
type result struct {
	Cell
	FirstRound, First, Last, Best float64
	Random, Human, Single         float64
}

func main() {
	list := flag.String("workloads", "rnnlm2:2,gnmt2:2,inception:2", "workload:gpus, comma-separated")
	methods := flag.String("methods", "rl-2017,hdp,GDP-one", "methods, comma-separated")
	evaluations := flag.Int("evaluations", 2000, "evaluations of each run")
	seeds := flag.Int("seeds", 6, "seeds")
	out := flag.String("o", "learned-rivals.jsonl", "results, one JSON document a line")
	flag.Parse()
	err := check(*methods, *seeds, flag.Args())
	if err == nil {
		err = run(*list, strings.Split(*methods, ","), *evaluations, *seeds, *out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "learned-rivals:", err)
		os.Exit(1)
	}
}

// check returns an error for what would be run as something else, or not at all.
func check(methods string, seeds int, left []string) error {
	if len(left) > 0 {
		return fmt.Errorf("%q: want flags alone", left)
	}
	if seeds < 1 {
		return fmt.Errorf("-seeds %d: want at least 1", seeds)
	}
	var names []string
	for _, v := range rivals {
		names = append(names, v.name)
	}
	for name := range strings.SplitSeq(methods, ",") {
		if !slices.Contains(names, name) {
			return fmt.Errorf("-methods %q: want some of %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

func run(list string, methods []string, evaluations, seeds int, out string) error {
	known := map[Cell]result{}
	file, err := fsx.OpenLines(out, func(line []byte) error {
		var r result
		err := json.Unmarshal(line, &r)
		known[r.Cell] = r
		return err
	})
	if err != nil {
		return err
	}
	defer file.Close()
	fmt.Println("| method | workload | GPUs | evaluations | first round | last tenth | improved | best | interval | random | one device | human |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
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
		p.Budget.Evaluations = evaluations
		for _, v := range rivals {
			if !slices.Contains(methods, v.name) {
				continue
			}
			var all []result
			for seed := range uint64(seeds) {
				c := Cell{name, v.name, devices, evaluations, seed + 1}
				r, done := known[c]
				if !done {
					if r, err = train(*p, v.make, c.Seed); err != nil {
						return fmt.Errorf("%s, %s, seed %d: %w", name, v.name, c.Seed, err)
					}
					r.Cell = c
					line, err := json.Marshal(r)
					if err != nil {
						return err
					}
					if err := file.Add(line); err != nil {
						return err
					}
				}
				all = append(all, r)
			}
			fmt.Println(line(all))
		}
	}
	return file.Close()
}

// line is a row of the table: medians over seeds in ms; the runs whose mean falls
// from the first round to the last tenth; the interval of the best, which holds
// its median with at least 95% where there are six seeds or more. What does not fit
// is longer than anything.
func line(all []result) string {
	ms := func(field func(result) float64) string { return milliseconds(median(all, field)) }
	improved := 0
	var best []float64
	for _, r := range all {
		if fitting(r.Last) < fitting(r.FirstRound) {
			improved++
		}
		best = append(best, fitting(r.Best))
	}
	interval := "-"
	if low, high, ok := compare.Interval(best); ok {
		interval = milliseconds(low) + " to " + milliseconds(high)
	}
	x := all[0]
	return fmt.Sprintf("| %s | %s | %d | %d | %s | %s | %d of %d | %s | %s | %s | %s | %s |", x.Method, x.Workload, x.GPUs, x.Evaluations,
		ms(func(r result) float64 { return r.FirstRound }), ms(func(r result) float64 { return r.Last }), improved, len(all),
		ms(func(r result) float64 { return r.Best }), interval,
		ms(func(r result) float64 { return r.Random }), ms(func(r result) float64 { return r.Single }), ms(func(r result) float64 { return r.Human }))
}

// fitting is a time of a result, infinite where nothing fits.
func fitting(seconds float64) float64 {
	if seconds == 0 {
		return math.Inf(1)
	}
	return seconds
}

func milliseconds(seconds float64) string {
	if math.IsInf(seconds, 1) {
		return "does not fit"
	}
	return fmt.Sprintf("%.1f", 1e3*seconds)
}

func median(all []result, field func(result) float64) float64 {
	var x []float64
	for _, r := range all {
		x = append(x, fitting(field(r)))
	}
	return compare.Median(x)
}

func train(p plan.Problem, rival func(func(sample)) plan.Placer, seed uint64) (r result, err error) {
	p.Seed = seed
	r.Seed = seed
	var rounds []sample
	o, err := rival(func(s sample) { rounds = append(rounds, s) }).Place(context.Background(), &p)
	if err != nil {
		return r, err
	}
	if len(rounds) == 0 {
		return r, errors.New("it sampled nothing")
	}
	r.Best = seconds(o.Score)
	r.tell(rounds, p.Budget.Evaluations)
	for _, b := range []struct {
		to     *float64
		placer plan.Placer
	}{{&r.Random, rules.RandomBest(unit.Cell)}, {&r.Human, rules.Expert()}} {
		o, err := b.placer.Place(context.Background(), &p)
		if err != nil {
			return r, err
		}
		*b.to = seconds(o.Score)
	}
	r.Single = seconds(p.Evaluator.Evaluate(plan.Decision{Device: make([]uint8, p.Graph.NumOps()), Priority: p.Priority}))
	return r, nil
}

// tell fills what is said of rounds, of n evaluations. Where no round ends within a tenth of
// them, the first or the last one stands for it.
func (r *result) tell(rounds []sample, n int) {
	first, last := rounds[:1], rounds[len(rounds)-1:]
	r.FirstRound = mean(first)
	if x := within(rounds, 0, n/10); x != nil {
		first = x
	}
	if x := within(rounds, n-n/10, n); x != nil {
		last = x
	}
	r.First, r.Last = mean(first), mean(last)
}

// seconds is the step of a plan, 0 where it does not fit.
func seconds(s plan.Score) float64 {
	if !s.Feasible() {
		return 0
	}
	return s.Value
}

// within returns the rounds that end after lo evaluations and not after hi.
func within(rounds []sample, lo, hi int) (in []sample) {
	for _, s := range rounds {
		if s.evaluations > lo && s.evaluations <= hi {
			in = append(in, s)
		}
	}
	return in
}

// mean is over the placements of the rounds that fit, 0 where none does.
func mean(rounds []sample) float64 {
	sum, n := 0.0, 0
	for _, s := range rounds {
		sum += s.seconds * float64(s.fit)
		n += s.fit
	}
	return sum / float64(max(n, 1))
}
