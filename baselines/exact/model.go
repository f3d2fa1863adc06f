package exact

import (
	"math"

	"placer/baselines/exact/cpsat"
	"placer/sim"
)

// ticks is the horizon of a model in its integer time: fine enough for bounds to
// a relative 1e-6, coarse enough for the solver's arithmetic.
const ticks = 1 << 30

// model is a table as a problem for CP-SAT. It is a relaxation: times are rounded
// down, devices may wait, links take transfers in any order, of memory only what
// is resident counts. So every plan that fits is one of its solutions, and its
// bound is one of theirs.
type model struct {
	cpsat.Model
	*table
	tick   float64       // seconds
	on     [][]cpsat.Var // [U][D] unit on device
	starts []cpsat.Var   // [N]
	step   cpsat.Var
	device [][]cpsat.Interval // [D]
	links  [][]cpsat.Interval // [L]
}

// newModel builds the model of t for steps of at most horizon seconds.
func newModel(t *table, horizon float64) *model {
	m := &model{table: t, tick: horizon / ticks, device: make([][]cpsat.Interval, t.d), links: make([][]cpsat.Interval, len(t.p.Machine.Links))}
	m.step = m.Int(0, ticks+1)
	for u := range t.units.NumUnits() {
		m.on = append(m.on, m.Bools(t.d))
		m.ExactlyOne(m.on[u]...)
	}
	for d, c := range t.classes {
		if c != d { // the first unit may as well be on the first device of a class
			m.Between(0, cpsat.Of(m.on[0][d]), 0)
		}
	}
	for d := range t.d {
		held := make([]int64, t.units.NumUnits())
		lives := make([]cpsat.Var, len(held))
		for u := range held {
			held[u], lives[u] = int64(t.resident[u]), m.on[u][d]
		}
		m.Between(0, cpsat.Weighted(lives, held), int64(t.p.Machine.Devices[d].Memory))
	}
	ends := m.ops()
	for k := range t.messages {
		m.message(&t.messages[k], ends)
	}
	for _, xs := range append(m.device, m.links...) {
		if len(xs) > 1 {
			m.NoOverlap(xs...)
		}
	}
	m.Minimize(cpsat.Of(m.step))
	return m
}

// time returns seconds in ticks, rounded down.
func (m *model) time(seconds float64) int64 { return int64(math.Floor(seconds / m.tick * (1 - 1e-12))) }

// ops adds an interval per op and device, there where the op is on the device, and
// returns the ops' ends.
func (m *model) ops() []cpsat.Linear {
	ends := make([]cpsat.Linear, m.n)
	for i := range m.n {
		start, on := m.Int(0, ticks), m.on[m.units.Of[i]]
		m.starts = append(m.starts, start)
		ends[i] = cpsat.Of(start) // plus the time on the op's device
		for d := range m.d {
			size := m.time(m.seconds[d][i])
			ends[i] = ends[i].Plus(cpsat.Of(on[d]).Times(size))
			s := cpsat.Of(start)
			m.device[d] = append(m.device[d], m.Interval(s, cpsat.Const(size), s.Add(size), on[d]))
		}
		m.AtMost(ends[i], cpsat.Of(m.step))
	}
	return ends
}

// message adds what x's users wait for: its end and, for each pair of devices, a
// transfer, there where x is sent between them.
func (m *model) message(x *message, ends []cpsat.Linear) {
	on := func(i int32, d int) cpsat.Var { return m.on[m.units.Of[i]][d] }
	for _, v := range x.users {
		m.AtMost(ends[x.from], cpsat.Of(m.starts[v]))
	}
	for to := range m.d {
		var start cpsat.Var
		for from := range m.d {
			if from == to {
				continue
			}
			var there []cpsat.Var // users elsewhere than x, on device to
			for _, v := range x.users {
				if m.units.Of[v] != m.units.Of[x.from] {
					there = append(there, on(v, to))
				}
			}
			if len(there) == 0 {
				continue
			}
			if start == 0 { // variable 0 is the step
				start = m.Int(0, ticks)
				m.AtMost(ends[x.from], cpsat.Of(start))
			}
			r := &m.routes[from*m.d+to]
			sent := m.Bool()
			for _, v := range there {
				m.Or([]cpsat.Var{sent, on(x.from, from).Not(), v.Not()})
			}
			size := m.time(r.seconds(x.bytes))
			s := cpsat.Of(start)
			span := m.Interval(s, cpsat.Const(size), s.Add(size), sent)
			if m.contention == sim.FIFO { // else a link may serve several at once
				for _, l := range r.links {
					m.links[l] = append(m.links[l], span)
				}
			}
			for _, v := range x.users {
				if m.units.Of[v] != m.units.Of[x.from] {
					m.AtMost(s.Add(size), cpsat.Of(m.starts[v]), on(x.from, from), on(v, to))
				}
			}
		}
	}
}

// hint starts the solver from a placement.
func (m *model) hint(device []uint8) {
	for u, ops := range m.units.Ops {
		for d := range m.d {
			value := int64(0)
			if int(device[ops[0]]) == d {
				value = 1
			}
			m.Hint(m.on[u][d], value)
		}
	}
}
