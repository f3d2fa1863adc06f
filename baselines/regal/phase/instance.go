package phase

import (
	"slices"

	"placer/baselines/regal/sched"
)

// instance is a problem's ops that take part in phases, renumbered in topological
// order.
type instance struct {
	p       *sched.Problem
	devices int
	ops     []int32   // [n] op of the problem
	time    []float64 // [n]
	level   []float64 // [n] longest path to an end, its own time included
	predAt  []int32
	pred    []int32 // each once
	succAt  []int32
	succ    []int32
	// early ops run before the first phase, late ones behind the last.
	early, late []bool // [N]
}

func newInstance(p *sched.Problem) *instance {
	x := &instance{p: p, devices: p.D(), early: make([]bool, p.N()), late: make([]bool, p.N())}
	for _, i := range p.Order() {
		x.early[i] = p.Time()[i] == 0
		for _, t := range p.Inputs(i) {
			x.early[i] = x.early[i] && x.early[p.Producer(t)]
		}
	}
	for _, i := range slices.Backward(p.Order()) {
		x.late[i] = p.Time()[i] == 0 && !x.early[i]
		for t, end := p.Outputs(i); t < end; t++ {
			for _, v := range p.Consumers(t) {
				x.late[i] = x.late[i] && x.late[v]
			}
		}
	}
	at := make([]int32, p.N()) // number in x.ops
	levels := p.BottomLevels()
	for _, i := range p.Order() {
		at[i] = -1
		if !x.early[i] && !x.late[i] {
			at[i] = int32(len(x.ops))
			x.ops = append(x.ops, i)
			x.time = append(x.time, p.Time()[i])
			x.level = append(x.level, levels[i])
		}
	}
	succs := make([][]int32, len(x.ops))
	x.predAt = []int32{0}
	for v, i := range x.ops {
		var from []int32
		for _, t := range p.Inputs(i) {
			if u := at[p.Producer(t)]; u >= 0 {
				from = append(from, u)
			}
		}
		slices.Sort(from)
		from = slices.Compact(from)
		for _, u := range from {
			succs[u] = append(succs[u], int32(v))
		}
		x.pred = append(x.pred, from...)
		x.predAt = append(x.predAt, int32(len(x.pred)))
	}
	x.succAt = []int32{0}
	for _, to := range succs {
		x.succ = append(x.succ, to...)
		x.succAt = append(x.succAt, int32(len(x.succ)))
	}
	return x
}

func (x *instance) preds(v int32) []int32 { return x.pred[x.predAt[v]:x.predAt[v+1]] }
func (x *instance) succs(v int32) []int32 { return x.succ[x.succAt[v]:x.succAt[v+1]] }

// sequence returns the schedule of an assignment of phases: ops in topological
// order within a phase, transfers at its end.
func (x *instance) sequence(device []uint8, phase []int32) (all []uint8, items []int32) {
	p := x.p
	all = make([]uint8, p.N())
	last := int32(0)
	for v, i := range x.ops {
		all[i] = device[v]
		last = max(last, phase[v])
	}
	groups := make([][]int32, last+3) // early, phases, late
	for _, i := range p.Order() {
		switch {
		case x.early[i]:
			groups[0] = append(groups[0], i)
		case x.late[i]:
			groups[last+2] = append(groups[last+2], i)
		}
	}
	for v, i := range x.ops {
		groups[phase[v]+1] = append(groups[phase[v]+1], i)
	}
	var to [sched.MaxDevices]bool
	send := func(i int32) {
		for t, end := p.Outputs(i); t < end; t++ {
			clear(to[:])
			for _, v := range p.Consumers(t) {
				to[all[v]] = true
			}
			for d := range p.D() {
				if to[d] && d != int(all[i]) {
					items = append(items, p.Transfer(t, d))
				}
			}
		}
	}
	for _, g := range groups {
		items = append(items, g...)
		for _, i := range g {
			send(i)
		}
	}
	return all, items
}
