package listsched

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// program is the linear program of Hanen and Munier (1995), as in section 3.2.3 of
// the paper, for starts s[i], op times k[i] and transfers c[ij]; y[ij] = 1 - x[ij]
// frees edge ij of its transfer, wholly where j is i's favourite child:
//
//	minimize w
//	s[i] + k[i] <= w                                 for every node
//	s[i] + k[i] + c[ij] (1 - y[ij]) <= s[j]          for every edge
//	sum over j of y[ij] <= 1, sum over i of y[ij] <= 1, y >= 0, s >= 0
type program struct {
	seconds []float64 // [V], in topological order
	edges   []edge    // [E], by ascending end
}

type edge struct {
	from, to int32
	seconds  float64
}

// simplexRows is the size up to which the simplex method solves a program, in a dense tableau of so many
// rows.
const simplexRows = 100

// solve returns y, [E], and w, exactly or as an upper bound that y reaches.
func (p *program) solve(ctx context.Context) (free []float64, length float64, exact bool) {
	if len(p.edges) == 0 {
		return nil, p.length(nil), true
	}
	if p.rows() <= simplexRows {
		if free, length, err := p.exact(); err == nil {
			return free, length, true
		}
	}
	free, length = p.descend(ctx, descendRounds)
	return free, length, false
}

func (p *program) rows() int { return 3*len(p.seconds) + len(p.edges) }

// exact solves the program in standard form: columns are s, y, w and a slack
// for each row.
func (p *program) exact() (free []float64, length float64, err error) {
	n, e := len(p.seconds), len(p.edges)
	unit := 0.0 // times are divided by their sum
	for _, k := range p.seconds {
		unit += k
	}
	for _, x := range p.edges {
		unit += x.seconds
	}
	rows := p.rows()
	a, b := make([][]float64, rows), make([]float64, rows)
	for r := range a {
		a[r] = make([]float64, n+e+1+rows)
	}
	for i, k := range p.seconds { // w - s - slack = k
		a[i][n+e] = 1
		a[i][i] = -1
		a[i][n+e+1+i] = -1
		b[i] = k / unit
	}
	for j, x := range p.edges { // s[to] - s[from] + c y - slack = k + c
		r := n + j
		a[r][x.to] = 1
		a[r][x.from] = -1
		a[r][n+j] = x.seconds / unit
		a[r][n+e+1+r] = -1
		b[r] = (p.seconds[x.from] + x.seconds) / unit
		a[n+e+int(x.from)][n+j] = 1
		a[2*n+e+int(x.to)][n+j] = 1
	}
	for r := n + e; r < rows; r++ { // sum of y + slack = 1
		a[r][n+e+1+r] = 1
		b[r] = 1
	}
	cost := make([]float64, n+e+1+rows)
	cost[n+e] = 1
	x, w, err := simplex(cost, a, b)
	if err != nil {
		return nil, 0, err
	}
	return x[n : n+e], w * unit, nil
}

// length returns the longest path, w for the best starts, under y; nil frees
// nothing.
func (p *program) length(free []float64) (longest float64) {
	end := slices.Clone(p.seconds)
	for k, x := range p.edges { // by ascending end, so x.from is final
		y := 0.0
		if free != nil {
			y = free[k]
		}
		end[x.to] = max(end[x.to], end[x.from]+x.seconds*(1-y)+p.seconds[x.to])
	}
	return slices.MaxFunc(append(end, 0), cmp.Compare)
}

// floor returns the longest path of the ops alone, a lower bound of w.
func (p *program) floor() float64 {
	all := make([]float64, len(p.edges))
	for k := range all {
		all[k] = 1
	}
	return p.length(all)
}

const descendRounds = 300

// descend approximates the program: w is the longest path, a convex function of
// y, made smooth by a soft maximum whose softness falls; its gradient is minus the
// transfers times the probabilities of edges to lie on the path. Every step is
// followed by a projection onto the sums, so that all iterates are solutions, and
// the best is returned.
func (p *program) descend(ctx context.Context, rounds int) (best []float64, length float64) {
	e := len(p.edges)
	y, on := make([]float64, e), make([]float64, e)
	out, in := p.incident()
	best, length = slices.Clone(y), p.length(y)
	for r := range rounds {
		if r%16 == 0 && ctx.Err() != nil {
			break
		}
		soft := length * 0.02 * math.Pow(0.02, float64(r)/float64(rounds))
		p.likely(y, soft, on)
		most := 0.0
		for k, x := range p.edges {
			on[k] *= x.seconds
			most = max(most, on[k])
		}
		if most == 0 {
			break
		}
		step := 0.7 / math.Sqrt(1+float64(r)/4) / most
		for k := range y {
			y[k] += step * on[k]
		}
		for range 3 {
			project(y, out)
			project(y, in)
		}
		p.shrink(y, out)
		if w := p.length(y); w < length {
			length = w
			copy(best, y)
		}
	}
	return best, length
}

// likely writes to on, [E], the probability of each edge to lie on the longest
// path, where a path is the likelier the longer it is, by e for each soft seconds.
func (p *program) likely(free []float64, soft float64, on []float64) {
	n := len(p.seconds)
	head := make([]float64, n) // soft maximum over paths to the node's start
	mass := make([]float64, n)
	for at := 0; at < len(p.edges); {
		v, end := p.edges[at].to, at
		most := math.Inf(-1)
		for ; end < len(p.edges) && p.edges[end].to == v; end++ {
			x := p.edges[end]
			on[end] = head[x.from] + p.seconds[x.from] + x.seconds*(1-free[end])
			most = max(most, on[end])
		}
		sum := 0.0
		for k := at; k < end; k++ {
			on[k] = math.Exp((on[k] - most) / soft)
			sum += on[k]
		}
		for k := at; k < end; k++ {
			on[k] /= sum // given that v is on the path
		}
		head[v] = most + soft*math.Log(sum)
		at = end
	}
	most, sum := math.Inf(-1), 0.0
	for v := range n {
		most = max(most, head[v]+p.seconds[v])
	}
	for v := range n {
		mass[v] = math.Exp((head[v] + p.seconds[v] - most) / soft)
		sum += mass[v]
	}
	for v := range n {
		mass[v] /= sum
	}
	for k := len(p.edges) - 1; k >= 0; k-- {
		x := p.edges[k]
		on[k] *= mass[x.to]
		mass[x.from] += on[k]
	}
}

// incident returns the edges out of and into each node.
func (p *program) incident() (out, in [][]int32) {
	out, in = make([][]int32, len(p.seconds)), make([][]int32, len(p.seconds))
	for k, x := range p.edges {
		out[x.from] = append(out[x.from], int32(k))
		in[x.to] = append(in[x.to], int32(k))
	}
	return out, in
}

// project moves the values of each set to the nearest that sum to at most 1.
func project(y []float64, sets [][]int32) {
	var values []float64
	for _, set := range sets {
		sum := 0.0
		for _, k := range set {
			sum += y[k]
		}
		if sum <= 1 {
			continue
		}
		values = values[:0]
		for _, k := range set {
			values = append(values, y[k])
		}
		slices.Sort(values)
		total, cut := 0.0, 0.0
		for m := len(values) - 1; m >= 0; m-- { // the largest ones stay above 0
			total += values[m]
			if c := (total - 1) / float64(len(values)-m); values[m] > c {
				cut = c
			}
		}
		for _, k := range set {
			y[k] = max(0, y[k]-cut)
		}
	}
}

// shrink scales the values of each set that still sum to more than 1.
func (p *program) shrink(y []float64, sets [][]int32) {
	for _, set := range sets {
		sum := 0.0
		for _, k := range set {
			sum += y[k]
		}
		if sum > 1 {
			for _, k := range set {
				y[k] /= sum
			}
		}
	}
}
