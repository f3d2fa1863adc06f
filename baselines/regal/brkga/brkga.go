package brkga

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Fitness is what is minimised. Cost reads a chromosome of Keys numbers in [0,1],
// does not keep it, and is called from one goroutine.
type Fitness interface {
	Keys() int
	Cost(keys []float32) float64
}

// Distributions propose chromosomes: the first population and all mutants.
// Sample fills keys, [L], with numbers in [0,1] that follow from r.
type Distributions interface {
	Sample(r *rand.Rand, keys []float32)
}

// Config holds the algorithm's numbers. Chromosomes, Elites and Mutants are those
// of one population; what is neither elite nor mutant in a generation is a child.
type Config struct {
	Populations int // evolved independently, one generation each in turn
	Chromosomes int // π
	Elites      int // πe
	Mutants     int // π - πe - πc
	// EliteBias is ρ in [0.5,1): the probability that a child takes a key from its
	// elite parent.
	EliteBias float64
	// OneGeneration stops evolution: all evaluations go to samples of the
	// distributions. This is IDRS, instance-dependent random search.
	OneGeneration bool
}

// Default returns values within what Gonçalves and Resende recommend: elites a
// tenth to a quarter, mutants a tenth to three tenths, ρ from 0.5 to 0.8.
func Default() Config {
	return Config{Populations: 1, Chromosomes: 100, Elites: 20, Mutants: 15, EliteBias: 0.7}
}

// Validate reports every fault of c.
func (c Config) Validate() error {
	var all []error
	fault := func(format string, a ...any) { all = append(all, fmt.Errorf("brkga: "+format, a...)) }
	if c.Populations < 1 {
		fault("%d populations, want at least 1", c.Populations)
	}
	if c.Elites < 1 || c.Mutants < 0 || c.Elites+c.Mutants > c.Chromosomes || c.Elites == c.Chromosomes {
		fault("%d elites and %d mutants of %d chromosomes", c.Elites, c.Mutants, c.Chromosomes)
	}
	if !(c.EliteBias >= 0.5 && c.EliteBias < 1) {
		fault("elite bias %g, want [0.5,1)", c.EliteBias)
	}
	return errors.Join(all...)
}

// Budget says when to stop and what to record.
type Budget struct {
	Evaluations int
	// Checkpoints are numbers of evaluations, ascending, at which the best cost so
	// far is recorded.
	Checkpoints []int
}

// Result is what a run found.
type Result struct {
	Best        []float32 // [L]
	Cost        float64
	Evaluations int
	// Checkpoints are the best costs at the budget's checkpoints, +Inf for those
	// not reached.
	Checkpoints []float64
	// Population is the last full generation of the first population, the best
	// first, [π][L]; REGAL averages it into features.
	Population [][]float32
}

// Run evolves chromosomes until the budget is spent or ctx ends, and returns the
// best. It panics if c is not valid or the budget has no evaluations.
func Run(ctx context.Context, f Fitness, d Distributions, c Config, b Budget, r *rand.Rand) *Result {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	if b.Evaluations < 1 {
		panic(fmt.Sprintf("brkga: budget of %d evaluations", b.Evaluations))
	}
	s := &search{f: f, d: d, c: c, b: b, r: r, done: ctx.Done(), threshold: uint64(math.Round(c.EliteBias * (1 << 16)))}
	s.result = &Result{Best: make([]float32, f.Keys()), Cost: math.Inf(1), Checkpoints: make([]float64, len(b.Checkpoints))}
	for i := range s.result.Checkpoints {
		s.result.Checkpoints[i] = math.Inf(1)
	}
	if c.OneGeneration {
		s.sampleOnly()
	} else {
		s.evolve()
	}
	return s.result
}

type search struct {
	f         Fitness
	d         Distributions
	c         Config
	b         Budget
	r         *rand.Rand
	done      <-chan struct{}
	threshold uint64 // EliteBias in 1/65536
	result    *Result
	passed    int // checkpoints
}

// individual is a chromosome with its cost.
type individual struct {
	keys []float32
	cost float64
}

// evaluate costs x and reports whether the search goes on.
func (s *search) evaluate(x *individual) bool {
	x.cost = s.f.Cost(x.keys)
	r := s.result
	r.Evaluations++
	if x.cost < r.Cost || r.Evaluations == 1 {
		r.Cost = x.cost
		copy(r.Best, x.keys)
	}
	for s.passed < len(s.b.Checkpoints) && r.Evaluations >= s.b.Checkpoints[s.passed] {
		r.Checkpoints[s.passed] = r.Cost
		s.passed++
	}
	if r.Evaluations >= s.b.Evaluations {
		return false
	}
	if r.Evaluations&63 == 0 {
		select {
		case <-s.done:
			return false
		default:
		}
	}
	return true
}

func (s *search) sampleOnly() {
	x := individual{keys: make([]float32, s.f.Keys())}
	for {
		s.d.Sample(s.r, x.keys)
		if !s.evaluate(&x) {
			return
		}
	}
}

// evolve runs generations of every population in turn.
func (s *search) evolve() {
	now, next := make([][]individual, s.c.Populations), make([][]individual, s.c.Populations)
	for k := range now {
		now[k], next[k] = s.room(), s.room()
	}
	defer func() { // the last generation that was finished, sorted
		for _, x := range now[0] {
			s.result.Population = append(s.result.Population, x.keys)
		}
	}()
	for k := range now {
		for i := range now[k] {
			x := &now[k][i]
			s.d.Sample(s.r, x.keys)
			if !s.evaluate(x) {
				now[0] = now[0][:min(len(now[0]), s.result.Evaluations)]
				byCost(now[0])
				return
			}
		}
		byCost(now[k])
	}
	for {
		for k := range now {
			full, more := s.generation(now[k], next[k])
			if full {
				now[k], next[k] = next[k], now[k]
			}
			if !more {
				return
			}
		}
	}
}

func (s *search) room() []individual {
	keys := make([]float32, s.c.Chromosomes*s.f.Keys())
	all := make([]individual, s.c.Chromosomes)
	for i := range all {
		n := s.f.Keys()
		all[i].keys = keys[i*n : (i+1)*n : (i+1)*n]
	}
	return all
}

// generation fills next from now, which is sorted, and sorts it if it is filled. It reports
// whether it is, and whether the search goes on.
func (s *search) generation(now, next []individual) (full, more bool) {
	elites, children := s.c.Elites, s.c.Chromosomes-s.c.Mutants
	for i := range elites {
		copy(next[i].keys, now[i].keys)
		next[i].cost = now[i].cost
	}
	for i := elites; i < len(next); i++ {
		if i < children {
			elite := &now[s.r.IntN(elites)]
			other := &now[elites+s.r.IntN(len(now)-elites)]
			cross(s.r, s.threshold, elite.keys, other.keys, next[i].keys)
		} else {
			s.d.Sample(s.r, next[i].keys)
		}
		if more = s.evaluate(&next[i]); !more && i < len(next)-1 {
			return false, false
		}
	}
	byCost(next)
	return true, more
}

// cross writes into child each key of elite with probability threshold/65536,
// else that of other.
func cross(r *rand.Rand, threshold uint64, elite, other, child []float32) {
	other, child = other[:len(elite)], child[:len(elite)]
	var bits uint64
	for i := range elite {
		if i&3 == 0 {
			bits = r.Uint64()
		}
		k := elite[i]
		if bits&0xffff >= threshold {
			k = other[i]
		}
		child[i] = k
		bits >>= 16
	}
}

// byCost sorts the cheapest first; equal ones keep their places.
func byCost(all []individual) {
	slices.SortStableFunc(all, func(a, b individual) int {
		switch {
		case a.cost < b.cost:
			return -1
		case a.cost > b.cost:
			return 1
		}
		return 0
	})
}
