package verdict

import (
	"context"
	"errors"
	"fmt"
	"placer/baselines/search/fusion"
	"slices"

	"placer/placer/methods"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// Config bounds a sweep.
type Config struct {
	// Counts are the numbers of devices, ascending; nil: every one from 1.
	Counts []int
	// Budget in seconds is for the whole sweep and counts from the zero of the host's
	// clock. In evaluations it is for each count of each machine, and is used in whole
	// rounds, so that a larger budget repeats all that a smaller one does.
	Budget plan.Budget
	Seed   uint64
	// Workers is how many methods run at once. Under a budget in evaluations nothing
	// depends on it.
	Workers int
	// Methods are those of package placer/methods that a count is searched by, beside
	// the answers for fewer devices and the polish of the best; nil: those of Methods.
	Methods []string
}

// Methods are the names of the methods that a sweep of a graph of so many ops searches by
// where nothing else is said: those that give something in seconds.
func Methods(ops int) []string {
	names := []string{"single", "human", "listsched", "heft-units", "anneal", "GO-one"}
	if ops <= largeOps {
		names = append(names, "etf-units", "heft", "m-topo", "m-etf", methods.ZeroShot, exact)
	}
	return names
}

// largeOps is the size of a graph from which on a sweep leaves out what takes seconds.
const largeOps = 40_000

// exact is branch and bound, for graphs of so many ops at most.
const (
	exact    = "exact"
	exactOps = 64
)

// Validate reports every fault.
func (c Config) Validate() error {
	var errs []error
	if c.Budget.Seconds < 0 || c.Budget.Evaluations < 0 || c.Budget == (plan.Budget{}) {
		errs = append(errs, fmt.Errorf("budget: %g seconds and %d evaluations, want one above 0 and none below", c.Budget.Seconds, c.Budget.Evaluations))
	}
	if c.Workers < 1 {
		errs = append(errs, fmt.Errorf("workers: %d, want at least 1", c.Workers))
	}
	for k, n := range c.Counts {
		if n < 1 || k > 0 && n <= c.Counts[k-1] {
			errs = append(errs, fmt.Errorf("counts of devices are %v, want ascending ones from 1", c.Counts))
			break
		}
	}
	return errors.Join(errs...)
}

// Sweep answers for every count of devices of every machine, fewest first: machine by
// machine, counts ascending. An answer is never worse than that for fewer devices of its
// machine, nor than what the plan of another machine comes to on it. tell, if not nil,
// is told of each answer as it is found; the returned ones may be better.
//
// Where ctx ends, or the time has been over for a while (overtime), the counts that have not
// been begun are left; every machine has one answer at least.
func Sweep(ctx context.Context, s problem.Source, ms []Machine, c Config, h search.Host, tell func(*Answer)) (answers []Answer, left []Left, err error) {
	if err := c.Validate(); err != nil {
		return nil, nil, err
	}
	x := &sweep{source: s, machines: ms, c: c, host: h, problems: map[place]*problem.Problem{}}
	for m := range ms {
		for n := 1; n <= ms[m].NumDevices(); n++ {
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
		if tell != nil {
			tell(a)
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
// moment, and on those of a million ops seconds for each count.
const (
	overtimeShare   = 0.1
	overtimeSeconds = 2
)

// over reports whether no further count is begun.
func (x *sweep) over(ctx context.Context) bool {
	b := x.c.Budget.Seconds
	return ctx.Err() != nil || b > 0 && x.host.Clock() > b+max(overtimeSeconds, overtimeShare*b)
}

// place is a count of devices of a machine.
type place struct{ devices, machine int }

// sweep is the state of one Sweep.
type sweep struct {
	source   problem.Source
	machines []Machine
	c        Config
	host     search.Host
	todo     []place
	answers  []Answer // so far
	problems map[place]*problem.Problem
	behind   float64 // seconds that a search takes when its methods have ended
}

// searchShare is the part of a sweep's time in which it searches; the rest is for what
// the methods need to stop, and for the exchange of plans at the end.
const searchShare = 0.92

// impossibleShare is the part of a count's time that goes to one where nothing can fit:
// what it lacks is known nearly at once.
const impossibleShare = 0.2

// answer searches the k-th count, knowing the answers before.
func (x *sweep) answer(ctx context.Context, k int, at place) (*Answer, error) {
	a := &Answer{Machine: at.machine, Devices: at.devices, On: x.machines[at.machine].Taken(at.devices)}
	p, impossible, err := assemble(x.source, a)
	if err != nil {
		return nil, err
	}
	x.problems[at] = p
	a.AtPeak = atPeak(x.source.Graph, a.On)
	a.AtLeast = leastMissing(x.source, a.On, sim.PeakBound(x.source.Graph, 1))
	if !impossible {
		a.Bound = p.Bound
	}
	for _, s := range x.seeds(at) {
		a.consider(p, s.Decision, s.Method)
	}
	if err := x.rules(ctx, p, a); err != nil {
		return nil, err
	}
	if n := x.c.Budget.Evaluations; n > 0 {
		return a, x.rounds(ctx, p, a, n)
	}
	share := 1.0
	if impossible {
		share = impossibleShare
	}
	if err := x.timed(ctx, p, a, share*x.left(k), x.names()); err != nil || a.Score.Feasible() {
		return a, err
	}
	return a, x.timed(ctx, p, a, repairShare*share*x.left(k), []string{repair})
}

// rules considers the placements of two rules that take a moment, whatever time there is:
// layers on consecutive devices, and ops that fill one device after the other.
func (x *sweep) rules(ctx context.Context, p *problem.Problem, a *Answer) error {
	if a.Devices == 1 {
		return nil
	}
	for _, name := range []string{"human", "m-topo"} {
		m, err := methods.Find(name)
		if err != nil {
			return err
		}
		placer, err := m.New(methods.Default())
		if err != nil {
			return err
		}
		if out, err := (dressed{placer, a.Decision}).Place(ctx, &p.Problem); err == nil {
			a.consider(p, out.Decision.Or(plan.Decision{Priority: p.Priority}), name)
		}
	}
	return nil
}

// left returns the seconds of the k-th count: an equal share of what is left.
func (x *sweep) left(k int) float64 {
	return (searchShare*x.c.Budget.Seconds - x.host.Clock()) / float64(len(x.todo)-k)
}

// timed searches for so many seconds from now on, of which what a search takes behind its
// methods is left out: judging their rows, tidying the best.
func (x *sweep) timed(ctx context.Context, p *problem.Problem, a *Answer, seconds float64, names []string) error {
	now, host := x.host.Clock(), x.host
	if x.behind == 0 {
		p.Evaluator.Clone().Evaluate(plan.Decision{Device: make([]uint8, p.Graph.NumOps()), Priority: p.Priority})
		x.behind = judged * (x.host.Clock() - now)
		now = x.host.Clock()
	}
	budget := max(seconds-x.behind, leastShare*seconds)
	host.Clock = func() float64 { return x.host.Clock() - now }
	err := x.search(ctx, p, a, plan.Budget{Seconds: budget}, host, x.c.Seed, names)
	x.behind = max(x.behind, x.host.Clock()-now-budget)
	return err
}

// What a search takes behind its methods is so many evaluations, before one has shown
// it; and a search has this part of its time at least.
const (
	judged     = 100
	leastShare = 0.4
)

// repairShare is the part of a count's share that a repair has where the best plan found
// does not fit.
const repairShare = 0.5

// assemble returns the problem of a, also where nothing can fit: what is missing is then
// what methods make small.
func assemble(s problem.Source, a *Answer) (p *problem.Problem, impossible bool, err error) {
	contention, err := s.Contention("")
	if err != nil {
		return nil, false, err
	}
	var o problem.Options
	o.Tasks = problem.Options{Contention: contention.String()}.DefaultTasks()
	p, err = problem.New(s, a.On, o)
	if !errors.Is(err, problem.ErrInfeasible) {
		return p, false, err
	}
	roomy := *a.On
	roomy.Devices = slices.Clone(a.On.Devices)
	for d := range roomy.Devices {
		roomy.Devices[d].Memory += s.Resident()
	}
	if p, err = problem.New(s, &roomy, o); err != nil {
		return nil, true, err
	}
	if p.Simulator, _, err = problem.Simulator(s, a.On, o); err != nil {
		return nil, true, err
	}
	p.Machine, p.Evaluator, p.Kernels, p.Moves, p.Bound = a.On, p.Simulator, p.Simulator.KernelCosts, p.Simulator.Moves, 0
	return p, true, nil
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

func (x *sweep) names() []string {
	if x.c.Methods != nil {
		return x.c.Methods
	}
	return Methods(x.source.NumOps())
}

// round is the least budget of a round, in evaluations: the first two have it, and each
// later one as much as all before it.
const round = 256

// rounds searches in rounds until n evaluations are spent.
func (x *sweep) rounds(ctx context.Context, p *problem.Problem, a *Answer, n int) error {
	names := x.names()
	for k, spent := 0, 0; spent < n && ctx.Err() == nil; k++ {
		b := max(round, spent)
		if err := x.search(ctx, p, a, plan.Budget{Evaluations: b}, x.host, plan.StreamSeed(x.c.Seed, fmt.Sprint("round ", k)), names); err != nil {
			return err
		}
		if !a.Score.Feasible() {
			if err := x.search(ctx, p, a, plan.Budget{Evaluations: b}, x.host, plan.StreamSeed(x.c.Seed, fmt.Sprint("repair ", k)), []string{repair}); err != nil {
				return err
			}
		}
		names = []string{"anneal"} // the others give the same again, or start from nothing
		spent += b
	}
	return nil
}

// search searches p within b from the best of a, and improves a.
func (x *sweep) search(ctx context.Context, p *problem.Problem, a *Answer, b plan.Budget, h search.Host, seed uint64, names []string) error {
	before := a.Decision
	var ms []search.Method
	if a.Device != nil {
		ms = append(ms, methods.Given([]plan.Decision{before}))
	}
	all := methods.ForSearch(methods.Of(p), methods.Options{Level: methods.Default().Level, Workers: x.c.Workers})
	for k, m := range all {
		if m.Stage == search.StageBaseline {
			all[k].New = func(s search.Start) (plan.Placer, error) {
				placer, err := m.New(s)
				return dressed{placer, before}, err
			}
		}
	}
	if p.Graph.NumOps() <= exactOps && a.Devices > 1 && slices.Contains(names, exact) {
		m, err := methods.Find(exact)
		if err != nil {
			return err
		}
		ms = append(ms, search.Method{Name: m.Name, Kind: m.Kind, Stage: search.StageSearch, Weight: 1, New: func(search.Start) (plan.Placer, error) { return m.New(methods.Default()) }})
	}
	if slices.Equal(names, []string{repair}) {
		ms = append(ms, search.Method{Name: repair, Kind: plan.Search, Stage: search.StageSearch, Weight: 4, New: func(search.Start) (plan.Placer, error) { return repairer{p, before}, nil }})
		all = all[len(all)-1:]
	}
	for k, m := range all {
		if k == len(all)-1 || slices.Contains(names, m.Name) && suits(m.Name, a.Devices, before.Device != nil) {
			ms = append(ms, m)
		}
	}
	c := search.Default()
	c.Budget, c.Seed, c.Workers = b, seed, x.c.Workers
	if b.Evaluations > 0 || b.Seconds > 0 {
		found, err := search.Search(ctx, p, ms, c, h, nil, nil)
		if err != nil && !errors.Is(err, search.ErrNoPlacement) && !errors.Is(err, search.ErrNoTime) {
			return err
		}
		if err == nil {
			a.Evaluations += found.Evaluations
			for i := range found.Rows {
				a.take(&found.Rows[i])
			}
		}
	}
	if a.Device == nil { // no time for anything
		a.consider(p, plan.Decision{Device: make([]uint8, p.Graph.NumOps()), Priority: p.Priority}, "single")
	}
	return nil
}

// suits reports whether a method has something to decide on so many devices: on one the
// fusion, on more what a known plan for one does not say.
func suits(name string, devices int, seeded bool) bool {
	if devices == 1 {
		return name == "single" || name == "anneal"
	}
	return name != "single" || !seeded
}

// dressed is a method that places alone, whose placement is judged under more orders and
// fusions than the problem's: everything fused, and what the known plan has.
type dressed struct {
	plan.Placer
	known plan.Decision // Device is nil where there is none
}

func (d dressed) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	out, err := d.Placer.Place(ctx, p)
	if err != nil || out.Priority != nil || out.Fusion != nil {
		return out, err
	}
	var under []plan.Decision
	if p.Decides(plan.Fuse) {
		under = append(under, plan.Decision{Priority: p.Priority, Fusion: fusion.All(p.Graph.NumOps())})
	}
	if d.known.Device != nil {
		under = append(under, plan.Decision{Priority: p.Priority, Fusion: d.known.Fusion}, plan.Decision{Priority: d.known.Priority, Fusion: d.known.Fusion})
	}
	for _, u := range under {
		if ctx.Err() != nil {
			break
		}
		u.Device = out.Device
		out.Evaluations++
		if s := p.Evaluator.Evaluate(u); s.Better(out.Score) {
			out.Decision, out.Score = u, s
		}
	}
	return out, nil
}

// take keeps the row r if it is better, and its trade.
func (a *Answer) take(r *search.Row) {
	a.see(r.Decision, r.Score, r.Peak, r.Method)
	if a.Device == nil || r.Score.Better(a.Score) {
		method := r.Method
		a.Decision, a.Score, a.Peak, a.Used, a.Method = r.Decision, r.Score, r.Peak, used(r.Device), method
	}
}

// consider judges d, a plan that method found, and keeps it if it is better.
func (a *Answer) consider(p *problem.Problem, d plan.Decision, method string) {
	score := p.Evaluator.Clone().Evaluate(d)
	peak := p.Peak(d)
	a.see(d, score, peak, method)
	if a.Device == nil || score.Better(a.Score) {
		a.Decision, a.Score, a.Peak, a.Used, a.Method = d.Clone(), score, peak, used(d.Device), method
	}
}

// see remembers what a plan trades, if it fits.
func (a *Answer) see(d plan.Decision, score plan.Score, peak []units.Bytes, method string) {
	if score.Feasible() {
		a.Seen = append(a.Seen, Point{a.Machine, used(d.Device), score.Value, slices.Max(peak), method})
	}
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
