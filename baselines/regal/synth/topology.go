package synth

import "math/rand/v2"

// Kind is a random graph model of the paper's table 2.
type Kind int

// The models.
const (
	erdosRenyi      Kind = iota // every edge with probability 0.05
	barabasiAlbert              // each node joins 2 earlier ones, in proportion to their degrees
	wattsStrogatz               // a ring of 4 neighbours, each edge rewired with probability 0.3
	stochasticBlock             // 4 blocks, probability 0.3 inside, 0.01 across
	numKinds
)

func (k Kind) String() string {
	return [...]string{"erdos-renyi", "barabasi-albert", "watts-strogatz", "stochastic-block"}[k]
}

// edges is a set of undirected edges in the order of insertion.
type edges struct {
	n    int
	has  []bool // [n,n], both ways
	list [][2]int
}

func newEdges(n int) *edges { return &edges{n: n, has: make([]bool, n*n)} }

func (e *edges) set(i, j int, on bool) { e.has[i*e.n+j], e.has[j*e.n+i] = on, on }

func (e *edges) connected(i, j int) bool { return e.has[i*e.n+j] }

func (e *edges) add(i, j int) {
	if i != j && !e.connected(i, j) {
		e.set(i, j, true)
		e.list = append(e.list, [2]int{i, j})
	}
}

// topology draws an undirected graph of n nodes.
func topology(k Kind, n int, r *rand.Rand) [][2]int {
	e := newEdges(n)
	switch k {
	case erdosRenyi:
		e.chance(r, func(int, int) float64 { return 0.05 })
	case stochasticBlock:
		e.chance(r, func(i, j int) float64 {
			if i*4/n == j*4/n {
				return 0.3
			}
			return 0.01
		})
	case barabasiAlbert:
		e.preferential(r)
	case wattsStrogatz:
		e.smallWorld(r)
	}
	return e.list
}

func (e *edges) chance(r *rand.Rand, p func(i, j int) float64) {
	for i := range e.n {
		for j := i + 1; j < e.n; j++ {
			if r.Float64() < p(i, j) {
				e.add(i, j)
			}
		}
	}
}

func (e *edges) preferential(r *rand.Rand) {
	var ends []int // every node once per edge
	a, b := 0, 1
	for v := 2; v < e.n; v++ {
		e.add(v, a)
		e.add(v, b)
		ends = append(ends, a, b, v, v)
		a = ends[r.IntN(len(ends))]
		for b = a; b == a; {
			b = ends[r.IntN(len(ends))]
		}
	}
}

func (e *edges) smallWorld(r *rand.Rand) {
	const reach, rewire = 2, 0.3
	for step := 1; step <= reach; step++ {
		for i := range e.n {
			e.add(i, (i+step)%e.n)
		}
	}
	for k, edge := range e.list {
		if r.Float64() >= rewire {
			continue
		}
		i, to := edge[0], r.IntN(e.n)
		for to == i || e.connected(i, to) { // 4 neighbours of at least 50 nodes: some are free
			to = r.IntN(e.n)
		}
		e.set(i, edge[1], false)
		e.set(i, to, true)
		e.list[k] = [2]int{i, to}
	}
}
