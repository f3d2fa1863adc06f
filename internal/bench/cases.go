package bench

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"placer/graph/fuse"
	"placer/hw"
	"placer/internal/compare"
	"placer/placer/methods"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
)

// WholeSearch is the name under which a comparison runs all of placer search.
const WholeSearch = "search"

// ParseMethod returns the method that name lists, and the factor of its budget:
// "anneal*4" has four times that of the others.
func ParseMethod(name string) (m methods.Method, factor int, err error) {
	base, times, ok := strings.Cut(name, "*")
	factor = 1
	if ok {
		if factor, err = strconv.Atoi(times); err != nil || factor < 1 || factor > 1e6 {
			return m, 0, fmt.Errorf("method %q: want NAME or NAME*FACTOR", name)
		}
	}
	m, err = methods.Find(base)
	return m, factor, err
}

// nameOf returns a method's name with its factor as tables have it: names are matched
// without regard to case and hyphens.
func nameOf(name string) (string, error) {
	if strings.EqualFold(name, WholeSearch) {
		return WholeSearch, nil
	}
	m, factor, err := ParseMethod(name)
	if err != nil || factor == 1 {
		return m.Name, err
	}
	return fmt.Sprintf("%s*%d", m.Name, factor), nil
}

// Loader reads the graph and the machine of a case.
type Loader func(compare.Case) (problem.Source, *hw.Machine, error)

// SameInputs is load that refuses a case which stands for something else than when the
// comparison of j began.
func SameInputs(j *compare.Journal, load Loader) Loader {
	return func(c compare.Case) (problem.Source, *hw.Machine, error) {
		s, m, err := load(c)
		if err != nil {
			return s, m, err
		}
		times, err := timesHash(s)
		if err != nil {
			return s, m, err
		}
		predicted, err := predictions(s, m)
		if err != nil {
			return s, m, err
		}
		return s, m, j.SameInputs(compare.Inputs{Case: c.Name(), Graph: s.Graph.Hash(), Machine: m.Hash(), Times: times, Predicted: predicted})
	}
}

// predictions are seconds by which one version of the cost model and of the simulator is told
// from another: of all ops on every device, and the step of ops dealt out among the devices, as
// they come and with an order and fusion of their own.
func predictions(s problem.Source, m *hw.Machine) ([]float64, error) {
	x, _, err := problem.Simulator(s, m, problem.Options{})
	if err != nil {
		return nil, err
	}
	n, d := s.Graph.NumOps(), m.NumDevices()
	all := 0.0
	for on := range d {
		for _, t := range x.OpSeconds(on) {
			if !math.IsInf(t, 1) { // it cannot run there
				all += t
			}
		}
	}
	dealt := plan.Decision{Device: make([]uint8, n)}
	ordered := plan.Decision{Device: dealt.Device, Priority: make([]int32, n), Fusion: make([]uint8, n)}
	for i := range n {
		dealt.Device[i] = uint8(i % d)
		ordered.Priority[i] = int32(n - 1 - i)
		ordered.Fusion[i] = uint8(1 + i%3)
	}
	of := []float64{all}
	for _, p := range []plan.Decision{dealt, ordered} {
		if v := x.Evaluate(p).Value; !math.IsInf(v, 0) && !math.IsNaN(v) { // an op cannot run where it is dealt
			of = append(of, v)
		}
	}
	return of, nil
}

// timesHash identifies the op times that the file of s brings; empty where it brings none.
func timesHash(s problem.Source) (string, error) {
	h := sha256.New()
	var err error
	switch {
	case s.Times != nil:
		err = s.Times.Write(h)
	case s.Seconds != nil:
		err = binary.Write(h, binary.LittleEndian, s.Seconds)
	default:
		return "", nil
	}
	return hex.EncodeToString(h.Sum(nil)), err
}

// Cases runs the trials of a comparison. It loads cases when they are needed and
// lets them go when their last trial has ended.
type Cases struct {
	load    Loader
	clock   func() float64
	m       *compare.Matrix
	keep    bool // all, for methods that train on several
	mu      sync.Mutex
	entries map[string]*caseEntry
}

type caseEntry struct {
	compare.Case
	left  int        // trials that have not ended; guarded by Cases.mu
	mu    sync.Mutex // guards what follows, and clones of evaluators
	tried bool
	err   error
	// source and machine are what problems are assembled from; placement is that of
	// methods that place alone, whole that of a search, nil before it is needed.
	source           problem.Source
	machine          *hw.Machine
	placement, whole *problem.Problem
	rules            *fuse.Rules            // of the graph, nil before they are needed
	tight            map[plan.Tasks]float64 // the tightest bounds, by task
}

// NewCases returns the cases of m.
func NewCases(m *compare.Matrix, load Loader, clock func() float64) *Cases {
	x := &Cases{load: load, clock: clock, m: m, entries: map[string]*caseEntry{}}
	for _, name := range m.Methods {
		method, _, err := ParseMethod(name)
		x.keep = x.keep || err == nil && method.Joint
	}
	for _, one := range m.Cases {
		x.entries[one.Name()] = &caseEntry{Case: one, left: len(m.Methods) * len(m.Seeds)}
	}
	return x
}

// options are those that every problem of the comparison is assembled with.
func (x *Cases) options() problem.Options {
	return problem.Options{Scheduler: problem.Scheduler(x.m.Scheduler), Objective: x.m.Objective, Contention: x.m.Contention}
}

// open returns the case of that name, loaded, with the problem of placing it.
func (x *Cases) open(name string) (*caseEntry, error) {
	e := x.entries[name]
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.tried {
		e.tried = true
		if e.source, e.machine, e.err = x.load(e.Case); e.err == nil {
			e.placement, e.err = problem.New(e.source, e.machine, x.options())
		}
	}
	return e, e.err
}

// problem returns p of e with an evaluator of its own.
func (e *caseEntry) problem(p *problem.Problem) *problem.Problem {
	e.mu.Lock()
	defer e.mu.Unlock()
	own := *p
	own.Evaluator = p.Evaluator.Clone()
	return &own
}

// fusion returns what may be fused in the graph of e, which is loaded.
func (e *caseEntry) fusion() *fuse.Rules {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.rules == nil {
		e.rules = fuse.NewRules(e.placement.Graph)
	}
	return e.rules
}

// Ended lets the case go when none of its trials is left.
func (x *Cases) Ended(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.entries[name]
	if e.left--; e.left == 0 && !x.keep {
		e.source, e.machine, e.placement, e.whole, e.rules = problem.Source{}, nil, nil, nil, nil
	}
}

// Trial runs one cell. It is a compare.Do.
func (x *Cases) Trial(ctx context.Context, cell compare.Cell) (t compare.Trial, err error) {
	e, err := x.open(cell.Case)
	if errors.Is(err, problem.ErrInfeasible) {
		return compare.Trial{Skipped: err.Error()}, nil
	}
	if err != nil {
		return t, err
	}
	start := x.clock()
	clock := func() float64 { return x.clock() - start }
	recorder := &compare.Recorder{Clock: clock}
	var p *problem.Problem
	var out *plan.Outcome
	var note string
	if cell.Method == WholeSearch {
		if p, err = x.whole(e); err != nil {
			return t, err
		}
		t.Kind = plan.Search
		out, err = x.search(ctx, p, cell.Seed, clock, recorder)
	} else {
		m, factor, perr := ParseMethod(cell.Method)
		if perr != nil {
			return t, perr
		}
		p = e.problem(e.placement)
		t.Kind, note = m.Kind, methods.Careless(x.m.Objective, m)
		out, err = x.place(ctx, e, p.Problem, m, factor, cell.Seed, clock, recorder)
	}
	t.Seconds = clock()
	t.LowerBound = x.bound(ctx, e, p)
	if err != nil {
		if ctx.Err() != nil {
			return t, ctx.Err()
		}
		t.Skipped = whySkipped(err, cell.Method)
		return t, nil
	}
	d := plan.Decision{Device: out.Device, Priority: out.Priority}
	if d.Priority == nil {
		d.Priority = p.Priority
	}
	if p.Tasks.Has(plan.Fuse) {
		d.Fusion = out.Fusion
	}
	if err := (&plan.Plan{Decision: d}).Check(p.Graph, p.Machine); err != nil {
		return t, fmt.Errorf("method %s broke its contract: %w", cell.Method, err)
	}
	s := p.Evaluator.Evaluate(d)
	t.StepTime, t.Overflow, t.Evaluations, t.Notes = s.Value, int64(s.Overflow), out.Evaluations, out.Notes
	if note != "" {
		t.Notes = append(t.Notes, note)
	}
	t.Improvements = recorder.Improvements()
	return t, nil
}

// whySkipped is why a method came to no placement, on one line and without its name.
func whySkipped(err error, method string) string {
	return strings.TrimPrefix(strings.Join(strings.Split(strings.TrimSpace(err.Error()), "\n"), "; "), method+": ")
}

// companions returns the problems of the cases beside e, as far as they can be
// loaded.
func (x *Cases) companions(e *caseEntry) (all []*plan.Problem) {
	for _, one := range x.m.Cases {
		if other, err := x.open(one.Name()); other != e && err == nil {
			all = append(all, &other.problem(other.placement).Problem)
		}
	}
	return all
}

// place runs one method of the catalogue on p, a problem of e.
func (x *Cases) place(ctx context.Context, e *caseEntry, p plan.Problem, m methods.Method, factor int, seed uint64, clock func() float64, r *compare.Recorder) (*plan.Outcome, error) {
	o := methods.Default()
	if m.Joint {
		o.Companions = x.companions(e)
	}
	placer, err := m.New(o)
	if err != nil {
		return nil, err
	}
	p.Budget = x.m.Budget()
	p.Budget.Evaluations *= factor
	p.Budget.Seconds *= float64(factor)
	p.Seed, p.Clock, p.Report = seed, clock, r.Observe
	ctx, stop := within(ctx, clock, p.Budget.Seconds)
	defer stop()
	return placer.Place(ctx, &p)
}

// within is ctx for so many seconds from now on, by clock; 0 does not bound.
func within(ctx context.Context, clock func() float64, seconds float64) (context.Context, context.CancelFunc) {
	if seconds > 0 {
		return until(ctx, clock, clock()+seconds)
	}
	return ctx, func() {}
}

// whole returns the problem that placer search would be given for e: it decides on
// what a search decides on where nothing is asked for.
func (x *Cases) whole(e *caseEntry) (*problem.Problem, error) {
	e.mu.Lock()
	if e.whole == nil {
		o := x.options()
		o.Tasks = o.DefaultTasks()
		var err error
		if e.whole, err = problem.New(e.source, e.machine, o); err != nil {
			e.mu.Unlock()
			return nil, err
		}
	}
	e.mu.Unlock()
	return e.problem(e.whole), nil
}

// search runs all of placer search on p on one core, baselines included.
func (x *Cases) search(ctx context.Context, p *problem.Problem, seed uint64, clock func() float64, r *compare.Recorder) (*plan.Outcome, error) {
	of := methods.Of(p)
	all := methods.ByDefault(of, methods.ForSearch(of, methods.Default()))
	s := search.Default()
	s.Budget, s.Seed, s.Workers = x.m.Budget(), seed, 1
	own := *p
	own.Evaluator = p.Evaluator.Clone()
	spent := map[string]int{}
	host := search.Host{Clock: clock, Until: func(ctx context.Context, end float64) (context.Context, context.CancelFunc) {
		return until(ctx, clock, end)
	}, CPU: func() float64 { return 0 }, Observe: func(e search.Event) error {
		spent[e.Method] = max(spent[e.Method], e.Evaluations)
		if e.Device != nil {
			all := 0
			for _, n := range spent {
				all += n
			}
			r.Observe(plan.Progress{Evaluations: all, Best: e.Score})
		}
		return nil
	}}
	found, err := search.Search(ctx, &own, all, s, host)
	if err != nil {
		return nil, err
	}
	if found.Interrupted {
		return nil, context.Canceled
	}
	best := &found.Rows[found.Best]
	return &plan.Outcome{Decision: best.Decision, Score: best.Score, Evaluations: found.Evaluations}, nil
}

// bound returns the bound of p, a problem of e, at its tightest. When ctx ends, which ends
// the trial too, it may be looser.
func (x *Cases) bound(ctx context.Context, e *caseEntry, p *problem.Problem) float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.tight == nil {
		e.tight = map[plan.Tasks]float64{}
	}
	b, ok := e.tight[p.Tasks]
	if !ok {
		p.Tighten(ctx, 1)
		b = p.Bound
		e.tight[p.Tasks] = b
	}
	return b
}
