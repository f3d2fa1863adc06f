package propose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"placer/baselines/regal/brkga"
	"placer/baselines/regal/sched"
	"placer/internal/faults"
)

// Setting is a point of the grid behind REGAL's baseline "tuned BRKGA" (Paliwal et al.,
// ICLR 2020, A.10): the two parameters of one beta distribution for the keys of all
// ops, and the numbers of chromosomes, elites, mutants and populations, 648 settings
// in all. The paper does not print its grid; Grid is ours.
type Setting struct {
	Config brkga.Config `json:"config"`
	Shape  brkga.Shape  `json:"shape"`
}

// Tuned returns the setting that Tune chose of Grid on synthetic graphs for the
// run time; experiments/regal/tune has the rounds.
func Tuned() Setting {
	c := brkga.Config{Populations: 1, Chromosomes: 50, Elites: 15, Mutants: 5, EliteBias: 0.7}
	return Setting{c, brkga.Shape{Alpha: 0.25, Beta: 0.25}}
}

// Grid returns the settings: alpha and beta of 0.25, 1 and 4; 20, 50 or 100
// chromosomes; a tenth, a fifth or three tenths of them elites; a tenth or a
// fifth mutants; 1, 2, 4 or 8 populations. 3*3*3*3*2*4 = 648. The elite bias
// stays at 0.7.
func Grid() (all []Setting) {
	for _, alpha := range []float64{0.25, 1, 4} {
		for _, beta := range []float64{0.25, 1, 4} {
			for _, n := range []int{20, 50, 100} {
				for _, elites := range []int{1, 2, 3} {
					for _, mutants := range []int{1, 2} {
						for _, populations := range []int{1, 2, 4, 8} {
							c := brkga.Config{Populations: populations, Chromosomes: n, Elites: n * elites / 10, Mutants: n * mutants / 10, EliteBias: 0.7}
							all = append(all, Setting{c, brkga.Shape{Alpha: alpha, Beta: beta}})
						}
					}
				}
			}
		}
	}
	return all
}

// Coarse returns the settings of Grid with one population of 50 or 100
// chromosomes, a tenth or a fifth of them elites and a tenth mutants: 36.
func Coarse() (some []Setting) {
	for _, s := range Grid() {
		c := s.Config
		if c.Populations == 1 && c.Chromosomes >= 50 && 5*c.Elites <= c.Chromosomes && 10*c.Mutants == c.Chromosomes {
			some = append(some, s)
		}
	}
	return some
}

// Tuning says how Tune spends its runs: round i runs what is left of the grid
// on Graphs[i] further graphs and keeps the Keep[i] settings of least mean cost
// so far, in shares of the mean over settings.
type Tuning struct {
	Graphs, Keep []int
	Evaluations  int
	Objective    sched.Objective
	Seed         uint64
	// Known are the costs on the first graphs of an earlier search with the same
	// grid and numbers, as Ended was told them.
	Known [][]float64
	// Ended, if not nil, is told of each further graph: the costs of the settings
	// left, by their order in the grid in the first round and as reported later.
	Ended func(k int, costs []float64) error
}

// DefaultTuning returns rounds of 1, 3, 10 and 24 graphs that keep 100, 20, 4 and 1.
func DefaultTuning() Tuning {
	return Tuning{Graphs: []int{1, 3, 10, 24}, Keep: []int{100, 20, 4, 1}, Evaluations: 5000}
}

// Validate reports every fault of c.
func (c Tuning) Validate() error {
	var all faults.List
	if len(c.Graphs) == 0 || len(c.Graphs) != len(c.Keep) || slices.Min(append([]int{1}, append(slices.Clone(c.Graphs), c.Keep...)...)) < 1 {
		all = append(all, fmt.Errorf("tune: rounds of %v graphs that keep %v", c.Graphs, c.Keep))
	}
	all.If(c.Evaluations < 1, "tune: %d evaluations, want at least 1", c.Evaluations)
	return errors.Join(all...)
}

// Scored is a setting with its mean cost, where 1 is the mean of a graph's
// settings.
type Scored struct {
	Setting
	Cost   float64 `json:"cost"`
	Graphs int     `json:"graphs"`
}

// Tune returns the settings that are left after the last round, the best
// first. graph(k) gives training graph k. report is told of each round. It panics
// if c is not valid.
func Tune(ctx context.Context, grid []Setting, c Tuning, graph func(k int) (*sched.Problem, error), report func(round int, left []Scored)) ([]Scored, error) {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	left := make([]Scored, len(grid))
	for i, s := range grid {
		left[i].Setting = s
	}
	k := 0
	for round, graphs := range c.Graphs {
		for range graphs {
			costs, err := c.costs(ctx, left, graph, k)
			if err != nil {
				return nil, err
			}
			add(left, costs)
			k++
		}
		slices.SortStableFunc(left, func(a, b Scored) int { return cmp.Compare(a.Cost, b.Cost) })
		left = left[:min(len(left), c.Keep[round])]
		report(round, left)
	}
	return left, nil
}

// costs returns what all settings come to on graph k.
func (c Tuning) costs(ctx context.Context, left []Scored, graph func(k int) (*sched.Problem, error), k int) ([]float64, error) {
	if k < len(c.Known) {
		if len(c.Known[k]) != len(left) {
			return nil, fmt.Errorf("tune: %d known costs on graph %d, want %d", len(c.Known[k]), k, len(left))
		}
		return c.Known[k], nil
	}
	p, err := graph(k)
	if err != nil {
		return nil, err
	}
	e := sched.NewEvaluator(p, c.Objective)
	costs := make([]float64, len(left))
	for i, s := range left {
		r := rand.New(rand.NewPCG(c.Seed^0x74756e65, uint64(k)))
		got, err := Search(ctx, e, Fixed{Shape: s.Shape}, s.Config, c.Evaluations, r)
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		costs[i] = got.Cost
	}
	if c.Ended != nil {
		err = c.Ended(k, costs)
	}
	return costs, err
}

// add adds the costs on a graph to the settings' means.
func add(left []Scored, costs []float64) {
	mean := 0.0
	for _, x := range costs {
		mean += x / float64(len(costs))
	}
	for i := range left {
		x := &left[i]
		x.Cost = (x.Cost*float64(x.Graphs) + costs[i]/mean) / float64(x.Graphs+1)
		x.Graphs++
	}
}
