package synth

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"placer/baselines/regal/sched"
	"placer/internal/faults"
)

// Config holds the numbers of A.1.4.
type Config struct {
	MinOps, MaxOps   int     // without source and sink
	NoOutput, TwoOut float64 // probability of 0 and of 2 outputs; else 1
	Control          float64 // probability that an edge of an op with outputs is control
	Size, SizeSpread float64 // of tensors: normal
	TimeNoise        float64 // deviation of an op's time as a share of its inputs and outputs
	Machine          sched.Machine
}

// Default returns the paper's numbers.
func Default() Config {
	return Config{MinOps: 50, MaxOps: 200, NoOutput: 0.1, TwoOut: 0.1, Control: 0.2, Size: 50, SizeSpread: 10, TimeNoise: 0.1, Machine: sched.TwoDevices()}
}

// Validate reports every fault of c.
func (c Config) Validate() error {
	var all faults.List
	all.If(c.MinOps < 6 || c.MaxOps < c.MinOps, "synth: %d to %d ops, want at least 6", c.MinOps, c.MaxOps)
	for _, p := range []float64{c.NoOutput, c.TwoOut, c.NoOutput + c.TwoOut, c.Control} {
		all.If(!(p >= 0 && p <= 1), "synth: probability %g", p)
	}
	for _, x := range []float64{c.Size, c.SizeSpread, c.TimeNoise} {
		all.If(!(x >= 0) || math.IsInf(x, 0), "synth: size, spread or noise %g, want at least 0", x)
	}
	return errors.Join(all...)
}

// Generate draws one graph from r: a random undirected graph, directed along a
// random order, with a source before all heads and a sink behind all tails. Op 0
// is the source, then come the ops in that order, then the sink. Times and sizes
// are rounded to whole numbers, as CostGraphDef, the form the data was published
// in, holds them. It panics if c is not valid.
func (c Config) Generate(r *rand.Rand) *sched.Problem {
	if err := c.Validate(); err != nil {
		panic(err)
	}
	kind := Kind(r.IntN(int(numKinds)))
	n := c.MinOps + r.IntN(c.MaxOps-c.MinOps+1)
	pairs := direct(topology(kind, n, r), r.Perm(n))

	s := sched.Spec{Name: kind.String(), Time: make([]float64, n+2), Machine: c.Machine}
	source, sink := int32(0), int32(n+1)
	outputs := make([][]int, n+2) // into s.Tensors
	control := make([]int, n+2)   // the same, -1 for none yet
	tensor := func(t sched.Tensor) int {
		s.Tensors = append(s.Tensors, t)
		return len(s.Tensors) - 1
	}
	for i := range control {
		control[i] = -1
	}
	for i := int32(1); i <= int32(n); i++ {
		count := 1
		switch x := r.Float64(); {
		case x < c.NoOutput:
			count = 0
		case x < c.NoOutput+c.TwoOut:
			count = 2
		}
		for range count {
			size := max(1, int64(math.Round(c.Size+c.SizeSpread*r.NormFloat64())))
			outputs[i] = append(outputs[i], tensor(sched.Tensor{Producer: i, Size: size}))
			s.Time[i] += float64(size)
		}
	}
	order := func(u, v int32) {
		if control[u] < 0 {
			control[u] = tensor(sched.Tensor{Producer: u, Control: true})
		}
		x := &s.Tensors[control[u]]
		x.Consumers = append(x.Consumers, v)
	}
	head, tail := make([]bool, n+2), make([]bool, n+2)
	for i := 1; i <= n; i++ {
		head[i], tail[i] = true, true
	}
	for _, e := range pairs {
		u, v := int32(e[0]+1), int32(e[1]+1)
		head[v], tail[u] = false, false
		if len(outputs[u]) == 0 || r.Float64() < c.Control {
			order(u, v)
			continue
		}
		x := &s.Tensors[outputs[u][r.IntN(len(outputs[u]))]]
		x.Consumers = append(x.Consumers, v)
		s.Time[v] += float64(x.Size)
	}
	for i := int32(1); i <= int32(n); i++ {
		s.Time[i] = max(0, math.Round(s.Time[i]*(1+c.TimeNoise*r.NormFloat64())))
		if head[i] {
			order(source, i)
		}
		if tail[i] {
			order(i, sink)
		}
	}
	p, err := sched.New(s)
	if err != nil {
		panic("synth: " + err.Error()) // edges follow an order
	}
	return p
}

// direct returns the edges from lower to higher place, as places, ascending.
func direct(list [][2]int, place []int) [][2]int {
	for k, e := range list {
		i, j := place[e[0]], place[e[1]]
		list[k] = [2]int{min(i, j), max(i, j)}
	}
	slices.SortFunc(list, func(a, b [2]int) int {
		if a[0] != b[0] {
			return a[0] - b[0]
		}
		return a[1] - b[1]
	})
	return list
}
