package rivals

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"placer/baselines/exact/cpsat"
	"placer/baselines/regal/phase"
	"placer/baselines/regal/sched"
)

const (
	// sparePhases are those beyond the schedule that the solver starts from.
	sparePhases = 2
	// resolution is the number of units in the longest op's time where times are not
	// whole numbers.
	resolution = 1 << 20
)

// DefaultCPSAT returns one worker for ten units of the solver's deterministic time,
// roughly seconds.
func DefaultCPSAT() cpsat.Params {
	p := cpsat.DefaultParams()
	p.Work = 10
	return p
}

// solved is a schedule, as phase.Result, with the solver's verdict.
type solved struct {
	device   []uint8
	sequence []int32
	score    sched.Score
	// proven says that no schedule is shorter: the run time meets the lower bound.
	proven bool
	status cpsat.Status
}

// solve asks CP-SAT for a schedule by phases (package phase): every op is in one
// phase on one device; the run time is the sum over phases of the largest load. The
// number of phases is bounded, control dependencies between devices are held to the
// rule for data, and times are rounded to whole units, so an optimum of the model is
// one of the problem only where it meets the problem's lower bound.
//
// It starts the solver from a quick schedule by phases and returns the better of the
// two: the solver that comes to nothing in its time still has a schedule.
func solve(ctx context.Context, l *cpsat.Library, p *sched.Problem, params cpsat.Params, r *rand.Rand) (*solved, error) {
	start := phase.Quick()
	start.Rounds = 0 // greedy: what the solver adds should be the solver's
	from, err := phase.Solve(ctx, p, start, r)
	if err != nil {
		return nil, err
	}
	m := build(p, from)
	response, err := l.Solve(ctx, m.model, params)
	if err != nil {
		return nil, err
	}
	res := &solved{device: from.Device, sequence: from.Sequence, score: from.Score, status: response.Status}
	if response.Values != nil {
		device, at := m.read(response)
		found, err := phase.FromPhases(p, device, at)
		if err != nil {
			return nil, fmt.Errorf("CP-SAT: %w", err)
		}
		if found.Score.Time < res.score.Time {
			res.device, res.sequence, res.score = found.Device, found.Sequence, found.Score
		}
	}
	res.proven = res.score.Time <= p.LowerBound()
	return res, nil
}

// model is what is asked of the solver: in[i][k*D+d] says that op i is in phase k
// on device d.
type model struct {
	model   *cpsat.Model
	p       *sched.Problem
	phases  int
	in      [][]cpsat.Var // [N][K*D]; nil for ops outside the phases
	outside []bool
}

func build(p *sched.Problem, from *phase.Result) *model {
	m := &model{model: &cpsat.Model{}, p: p, phases: from.Phases + sparePhases, in: make([][]cpsat.Var, p.N()), outside: phase.Outside(p)}
	d := p.D()
	unit := m.unit()
	at, device := from.PhaseOf, from.Device
	loads := make([]cpsat.Linear, m.phases*d)
	total := int64(0)
	for i := range int32(p.N()) {
		if m.outside[i] {
			continue
		}
		in := m.model.Bools(m.phases * d)
		m.model.ExactlyOne(in...)
		m.in[i] = in
		t := int64(math.Round(p.Time()[i] / unit))
		total += t
		for k, x := range in {
			loads[k] = loads[k].Plus(cpsat.Of(x).Times(t))
			hint := int64(0)
			if k == int(at[i])*d+int(device[i]) {
				hint = 1
			}
			m.model.Hint(x, hint)
		}
	}
	m.edges()
	var sum cpsat.Linear
	for k := range m.phases {
		longest := m.model.Int(0, total)
		for _, load := range loads[k*d : k*d+d] {
			m.model.AtMost(load, cpsat.Of(longest))
		}
		sum = sum.Plus(cpsat.Of(longest))
	}
	m.model.Minimize(sum)
	return m
}

// unit returns the time of one unit of the model.
func (m *model) unit() float64 {
	longest, whole := 0.0, true
	for _, t := range m.p.Time() {
		longest = max(longest, t)
		whole = whole && t == math.Trunc(t)
	}
	if whole && longest < 1<<40 || longest == 0 {
		return 1
	}
	return longest / resolution
}

// edges adds phase(u) + [u and v on different devices] <= phase(v).
func (m *model) edges() {
	d := m.p.D()
	when := func(i int32) (e cpsat.Linear) {
		for k, x := range m.in[i] {
			e = e.Plus(cpsat.Of(x).Times(int64(k / d)))
		}
		return e
	}
	on := func(i int32, to int) (e cpsat.Linear) {
		for k := to; k < len(m.in[i]); k += d {
			e = e.Plus(cpsat.Of(m.in[i][k]))
		}
		return e
	}
	done := map[[2]int32]bool{}
	for v := range int32(m.p.N()) {
		for _, t := range m.p.Inputs(v) {
			u := m.p.Producer(t)
			if m.outside[u] || m.outside[v] || done[[2]int32{u, v}] {
				continue
			}
			done[[2]int32{u, v}] = true
			apart := m.model.Bool()
			for to := range d {
				m.model.AtMost(on(u, to).Minus(on(v, to)), cpsat.Of(apart))
			}
			m.model.AtMost(when(u).Plus(cpsat.Of(apart)), when(v))
		}
	}
}

func (m *model) read(r *cpsat.Response) (device []uint8, at []int32) {
	device, at = make([]uint8, m.p.N()), make([]int32, m.p.N())
	for i, in := range m.in {
		for k, x := range in {
			if r.True(x) {
				device[i], at[i] = uint8(k%m.p.D()), int32(k/m.p.D())
			}
		}
	}
	return device, at
}
