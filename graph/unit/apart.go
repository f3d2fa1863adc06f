package unit

import "placer/graph"

// mostApart is how many ops without edges are cells of their own; more are joined to as many.
const mostApart = 1024

// addApart labels the ops that do work and have no edges at all: nothing ties one to another, so
// each is a cell. Neighbours are joined to segments and chains by their time.
func (f *finder) addApart(l *labels) {
	ops := f.apart()
	seconds, sum := make([]float64, len(ops)), 0.0
	for k, i := range ops {
		seconds[k] = f.seconds[i]
		sum += seconds[k]
	}
	target := 0.0
	if len(ops) > mostApart {
		target = sum / mostApart
	}
	cell, seconds := runs(seconds, target)
	segment, seconds := runs(seconds, f.total*f.share/4)
	chain, _ := runs(seconds, f.total*f.share)
	chainOf := make([]int32, len(segment))
	for c, s := range segment {
		chainOf[c] = chain[s]
	}
	l.add(ops, cell, segment, chainOf)
}

// apart returns the ops that do work and have neither data nor control edges.
func (f *finder) apart() (ops []graph.OpID) {
	waited := make([]bool, f.n)
	for i := range graph.OpID(f.n) {
		for _, c := range f.g.Control(i) {
			waited[c] = true
		}
	}
	for i := range graph.OpID(f.n) {
		if f.seconds[i] > 0 && f.class[i].Launches() && !f.constant[i] && f.loose(i) && !waited[i] && len(f.g.Control(i)) == 0 {
			ops = append(ops, i)
		}
	}
	return ops
}

// runs numbers runs of neighbours that take about target each, a neighbour of more being a run,
// and returns what each run takes.
func runs(seconds []float64, target float64) (run []int32, sums []float64) {
	run = make([]int32, len(seconds))
	for k, x := range seconds {
		if last := len(sums) - 1; last < 0 || sums[last]+x/2 > target {
			sums = append(sums, 0)
		}
		sums[len(sums)-1] += x
		run[k] = int32(len(sums) - 1)
	}
	return run, sums
}
