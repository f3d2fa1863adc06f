package verdict

import (
	"context"
	"fmt"
	"slices"

	"placer/hw"
	"placer/placer/problem"
)

// Sweep answers for every count of devices of every machine, fewest first: machine by
// machine, counts ascending. An answer is never worse than that for fewer devices of its
// machine, nor than what the plan of another machine comes to on it.
//
// Where ctx ends, or the time has been over for a while (overtime), the counts that have not
// been begun are left; every machine has one answer at least.
func Sweep(ctx context.Context, s problem.Source, ms []Machine, c Config, h Host) (answers []Answer, left []Left, err error) {
	if err := c.Validate(); err != nil {
		return nil, nil, err
	}
	x := &sweep{source: s, machines: ms, c: c, host: h, problems: map[place]*problem.Problem{}}
	for m := range ms {
		for n := 1; n <= min(ms[m].NumDevices(), hw.MaxPlaced); n++ {
			if c.Counts == nil || slices.Contains(c.Counts, n) {
				x.todo = append(x.todo, place{n, m})
			}
		}
	}
	if len(x.todo) == 0 {
		return nil, nil, fmt.Errorf("no machine has one of the counts of devices %v", c.Counts)
	}
	slices.SortStableFunc(x.todo, func(a, b place) int { return a.devices - b.devices })
	for k, at := range x.todo {
		if x.over(ctx) && slices.ContainsFunc(x.answers, func(a Answer) bool { return a.Machine == at.machine }) {
			left = append(left, Left{at.machine, at.devices})
			continue
		}
		a, err := x.answer(ctx, k, at)
		if err != nil {
			return nil, nil, fmt.Errorf("%d of %s: %w", at.devices, ms[at.machine].Name, err)
		}
		x.answers = append(x.answers, *a)
		if h.Tell != nil {
			h.Tell(a)
		}
	}
	slices.SortStableFunc(x.answers, func(a, b Answer) int { return a.Machine - b.Machine })
	x.exchange()
	return x.answers, left, nil
}

// Left is a count of devices of a machine for which there was no time.
type Left struct{ Machine, Devices int }

// overtime is how long after the end of its time a sweep still judges the rules' plans for
// counts that are left, as a part of the time and in seconds: on most graphs that takes a
// moment, and on those of a million ops seconds for each count, which one that is begun
// takes again.
const (
	overtimeShare   = 0.1
	overtimeSeconds = 2
)

// over reports whether no further count is begun.
func (x *sweep) over(ctx context.Context) bool {
	b := x.c.Budget.Seconds
	return ctx.Err() != nil || b > 0 && x.host.Clock()+x.ahead > b+max(overtimeSeconds, overtimeShare*b)
}

// place is a count of devices of a machine.
type place struct{ devices, machine int }

// sweep is the state of one Sweep.
type sweep struct {
	source   problem.Source
	machines []Machine
	c        Config
	host     Host
	todo     []place
	answers  []Answer // so far
	problems map[place]*problem.Problem
	behind   float64 // seconds that a search takes when its methods have ended
	ahead    float64 // the most seconds that a count took before its search
}

// seeds returns the answers whose plans a search at may start from: the one for the most
// of fewer devices of the machine, and those of the other machines for at most as many.
func (x *sweep) seeds(at place) (s []*Answer) {
	own := -1
	for k := range x.answers {
		a := &x.answers[k]
		switch {
		case a.Machine == at.machine && (own < 0 || a.Devices > x.answers[own].Devices):
			own = k
		case a.Machine != at.machine && a.Devices == at.devices:
			s = append(s, a)
		}
	}
	if own >= 0 {
		s = append([]*Answer{&x.answers[own]}, s...)
	}
	return s
}

// exchange lets every answer take the plans of the answers for fewer devices and of the
// other machines where they are better. Answers are by machine, counts ascending.
func (x *sweep) exchange() {
	found := slices.Clone(x.answers)
	for k := range x.answers {
		a := &x.answers[k]
		p := x.problems[place{a.Devices, a.Machine}]
		for i := range found {
			if b := &found[i]; b.Machine != a.Machine && b.Devices <= a.Devices {
				a.consider(p, b.Decision, b.Method)
			}
		}
		if k > 0 && x.answers[k-1].Machine == a.Machine {
			a.consider(p, x.answers[k-1].Decision, x.answers[k-1].Method)
		}
	}
}
