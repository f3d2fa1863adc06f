package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"placer/baselines/catalogue"
	"placer/compare"
	"placer/graph/unit"
	"placer/placer"
	"placer/plan"
	"placer/sim"
)

// wholeSearch is the name under which a comparison runs all of placer search.
const wholeSearch = "search"

// parseMethod returns the method that name lists, and the factor of its budget:
// "anneal*4" has four times that of the others.
func parseMethod(name string) (m catalogue.Method, factor int, err error) {
	base, times, ok := strings.Cut(name, "*")
	factor = 1
	if ok {
		if factor, err = strconv.Atoi(times); err != nil || factor < 1 || factor > 1e6 {
			return m, 0, fmt.Errorf("method %q: want NAME or NAME*FACTOR", name)
		}
	}
	m, err = catalogue.Find(base)
	return m, factor, err
}

// cases loads the cases of a comparison when they are needed and lets them go
// when their last trial has ended.
type cases struct {
	c       *console
	m       *compare.Matrix
	keep    bool // all, for methods that train on several
	mu      sync.Mutex
	entries map[string]*caseEntry
}

type caseEntry struct {
	compare.Case
	left int // trials that have not ended; guarded by cases.mu
	once sync.Once
	task *placer.Task
	free bool // transfers never wait
	err  error
	mu   sync.Mutex // guards clones of the evaluator
}

func (c *console) newCases(m *compare.Matrix) *cases {
	x := &cases{c: c, m: m, entries: map[string]*caseEntry{}}
	for _, name := range m.Methods {
		method, _, err := parseMethod(name)
		x.keep = x.keep || err == nil && method.Joint
	}
	for _, one := range m.Cases {
		x.entries[one.Name()] = &caseEntry{Case: one, left: len(m.Methods) * len(m.Seeds)}
	}
	return x
}

// load returns the case of that name with its task.
func (x *cases) load(name string) *caseEntry {
	e := x.entries[name]
	e.once.Do(func() {
		l, err := x.c.loadGraph(&graphFlags{workload: e.Workload, file: e.Graph})
		if err != nil {
			e.err = err
			return
		}
		m, err := x.c.machineFor(&machineFlags{gpu: e.GPU, file: e.Machine, gpus: e.GPUs, named: !e.Own()}, l)
		if err != nil {
			e.err = err
			return
		}
		contention, err := l.contention(x.m.Contention)
		if err != nil {
			e.err = err
			return
		}
		e.free = contention == sim.Uncontended
		e.task, _, e.err = task(l, m, judging{scheduler: x.m.Scheduler, objective: x.m.Objective, contention: x.m.Contention})
	})
	return e
}

// ended lets the case go when none of its trials is left.
func (x *cases) ended(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.entries[name]; e.left > 1 {
		e.left--
	} else if !x.keep {
		e.task = nil
	}
}

// trial runs one cell. It is a compare.Do.
func (x *cases) trial(ctx context.Context, cell compare.Cell) (t compare.Trial, err error) {
	e := x.load(cell.Case)
	if e.err != nil {
		if errors.Is(e.err, errInfeasible) {
			return compare.Trial{Skipped: e.err.Error()}, nil
		}
		return t, e.err
	}
	e.mu.Lock()
	evaluator := e.task.Evaluator.Clone()
	e.mu.Unlock()
	start := x.c.clock()
	clock := func() float64 { return x.c.clock() - start }
	recorder := &compare.Recorder{Clock: clock}
	t.LowerBound = e.task.Bound
	var out *plan.Outcome
	if cell.Method == wholeSearch {
		t.Kind = plan.Search
		out, err = x.search(ctx, e.task, e.free, evaluator, cell.Seed, clock, recorder)
	} else {
		m, factor, perr := parseMethod(cell.Method)
		if perr != nil {
			return t, perr
		}
		t.Kind = m.Kind
		out, err = x.place(ctx, e, evaluator, m, factor, cell.Seed, clock, recorder)
	}
	t.Seconds = clock()
	if err != nil {
		if ctx.Err() != nil {
			return t, ctx.Err()
		}
		t.Skipped = strings.TrimPrefix(oneLine(err.Error()), cell.Method+": ")
		return t, nil
	}
	priority := out.Priority
	if priority == nil {
		priority = e.task.Priority
	}
	check := plan.Plan{Device: out.Device, Priority: priority}
	if err := check.Check(e.task.Graph, e.task.Machine); err != nil {
		return t, fmt.Errorf("method %s broke its contract: %w", cell.Method, err)
	}
	s := evaluator.Evaluate(out.Device, priority)
	t.StepTime, t.Overflow, t.Evaluations, t.Notes = s.Seconds, int64(s.Overflow), out.Evaluations, out.Notes
	if note := careless(x.m.Objective, cell.Method, t.Kind); note != "" {
		t.Notes = append(t.Notes, note)
	}
	t.Improvements = recorder.Improvements()
	return t, nil
}

// companions returns the problems of the cases beside e, as far as they can be
// loaded.
func (x *cases) companions(e *caseEntry) (all []*plan.Problem) {
	for _, one := range x.m.Cases {
		other := x.load(one.Name())
		if other == e || other.err != nil {
			continue
		}
		other.mu.Lock()
		t := other.task
		all = append(all, &plan.Problem{Graph: t.Graph, Machine: t.Machine, Units: t.Units, Priority: t.Priority, Objective: t.Objective, Evaluator: t.Evaluator.Clone()})
		other.mu.Unlock()
	}
	return all
}

// place runs one method of the catalogue on e.
func (x *cases) place(ctx context.Context, e *caseEntry, evaluator plan.Evaluator, m catalogue.Method, factor int, seed uint64, clock func() float64, r *compare.Recorder) (*plan.Outcome, error) {
	o := catalogue.Options{Level: unit.Chain, Workers: 1}
	if m.Joint {
		o.Companions = x.companions(e)
	}
	p, err := m.New(o)
	if err != nil {
		return nil, err
	}
	task := e.task
	b := x.m.Budget()
	b.Evaluations *= factor
	b.Seconds *= float64(factor)
	if b.Seconds > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Duration(b.Seconds*float64(time.Second)))
		defer stop()
	}
	return p.Place(ctx, &plan.Problem{
		Graph: task.Graph, Machine: task.Machine, Units: task.Units, Priority: task.Priority, Objective: task.Objective,
		Evaluator: evaluator, Budget: b, Seed: seed, Clock: clock, Report: r.Observe,
	})
}

// search runs all of placer search on one core, baselines included.
func (x *cases) search(ctx context.Context, task *placer.Task, free bool, evaluator plan.Evaluator, seed uint64, clock func() float64, r *compare.Recorder) (*plan.Outcome, error) {
	own := *task
	own.Evaluator, own.Peak = evaluator.Clone(), nil // the peaks come from a simulator that all trials share
	s := placer.DefaultSearch()
	s.Budget, s.Seed, s.Workers = x.m.Budget(), seed, 1
	spent := map[string]int{}
	found, err := placer.Search(ctx, &own, methods(unit.Chain, 1, task.Objective, plan.Place, free), s, placer.Host{Clock: clock, CPU: func() float64 { return 0 }}, func(e placer.Event) error {
		spent[e.Method] = max(spent[e.Method], e.Evaluations)
		if e.Device != nil {
			all := 0
			for _, n := range spent {
				all += n
			}
			r.Observe(plan.Progress{Evaluations: all, Best: e.Score})
		}
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	if found.Interrupted {
		return nil, context.Canceled
	}
	best := &found.Rows[found.Best]
	return &plan.Outcome{Device: best.Device, Priority: best.Priority, Score: best.Score, Evaluations: found.Evaluations}, nil
}
