package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"placer/internal/parallel"
	"placer/placer/problem"
	"placer/plan"
)

// ErrNoPlacement says that no method of a search came to a placement.
var ErrNoPlacement = errors.New("no method came to a placement")

// ErrNoTime says that a search ended without a placement because its budget was over,
// which says nothing about whether one fits.
var ErrNoTime = errors.New("the budget was over before the first placement")

// Search runs the methods on p within one budget and returns a row for each: the
// baselines first, then the searches and the policy side by side, then what
// starts from the best of those. When ctx ends, what runs stops with its best so
// far and the rest is skipped.
//
// With a budget in evaluations the placements depend on the seed alone, whatever
// the number of workers; each method has a random stream of its own.
//
// Where h has a Memory, methods that had ended are taken over as they were. Those that
// ran start again: from the beginning under a budget in evaluations, so that the plan is
// the one the uninterrupted run gives; from their best under a budget in seconds.
func Search(ctx context.Context, p *problem.Problem, methods []Method, c Config, h Host) (*Result, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if h.Memory == nil {
		h.Memory = &Memory{FirstFeasible: -1}
	}
	var err error
	if h.Memory, err = h.Memory.judged(p, h.Measurer != nil); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &searcher{
		ctx: ctx, problem: p, methods: methods, c: c, host: h, cancel: cancel,
		grace: graceAfter(c.Budget.Seconds, h.Clock()), cpuTimes: newCPUTimes(h.CPU), rows: make([]*Row, len(methods)), skipped: make([]*Skip, len(methods)), firstFeasible: h.Memory.FirstFeasible,
	}
	hard := ctx
	if c.Budget.Seconds > 0 {
		var stop context.CancelFunc
		hard, stop = h.until(ctx, c.Budget.Seconds)
		defer stop()
	}
	for stage := StageBaseline; stage <= StageFinish; stage++ {
		if stage == StageBaseline && c.Budget.Seconds > 0 {
			s.baselines(hard)
			continue
		}
		s.stage(hard, stage, func(*Method) bool { return true }, c.Budget.Seconds)
	}
	return s.result(ctx)
}

// baselineShare is the most of a budget in seconds that the baselines may take, and
// slowShare what is left of it for those that are slow on large graphs: on some, list
// scheduling takes seconds, and in a short search that time is better spent on searching.
const (
	baselineShare = 1.0 / 3
	slowShare     = 1.0 / 10
)

// baselines runs the baselines of a search in seconds, the slow ones last.
func (s *searcher) baselines(ctx context.Context) {
	left := s.c.Budget.Seconds - s.host.Clock()
	for _, slow := range []bool{false, true} {
		share := baselineShare
		if slow {
			share = slowShare
		}
		end := s.c.Budget.Seconds - (1-share)*left
		limit, stop := s.host.until(ctx, end)
		s.stage(limit, StageBaseline, func(m *Method) bool { return m.Slow == slow }, end)
		stop()
	}
}

// searcher is the state of one Search. mu guards what the queues share.
type searcher struct {
	ctx     context.Context // ends when the search is interrupted, not when its time is up
	problem *problem.Problem
	methods []Method
	c       Config
	host    Host
	cancel  context.CancelFunc
	grace   float64 // until when rules are late, on the host's clock

	mu            sync.Mutex
	cpuTimes      *cpuTimes
	rows          []*Row  // [methods]
	skipped       []*Skip // [methods]
	firstFeasible float64
	err           error // of the observer, or of a method that broke its contract
}

// stage runs the methods of one stage that take part in queues side by side and waits for
// them. end is when a budget in seconds is over for it and what comes after it.
func (s *searcher) stage(ctx context.Context, stage Stage, part func(*Method) bool, end float64) {
	var wait parallel.Group
	for _, l := range s.queues(stage, part, end) {
		wait.Go(func() { l.run(ctx, s) })
	}
	wait.Wait()
}

// place runs method k within b.
func (s *searcher) place(ctx context.Context, k int, b plan.Budget) {
	m := &s.methods[k]
	placer, err := m.New(s.startOf(k))
	if err != nil {
		s.skip(k, err.Error())
		return
	}
	own := s.begin(m, b)
	own.Report = func(p plan.Progress) {
		if !p.Best.Runs() {
			return
		}
		s.tell(k, Event{What: Progress, Budget: b, Evaluations: p.Evaluations, Score: p.Best, Decision: p.Decision, Placer: placer})
	}
	s.tell(k, Event{What: Started, Budget: b, Placer: placer})
	out, err := placer.Place(ctx, own)
	s.mu.Lock()
	s.cpuTimes.stop(m.Name)
	s.mu.Unlock()
	var before Remembered
	if s.c.Budget.Evaluations == 0 {
		before = s.host.Memory.Running[m.Name]
	}
	out, err = before.with(out, err)
	if errors.Is(err, context.DeadlineExceeded) {
		s.skip(k, "its time was over before its first placement")
		return
	}
	if err != nil {
		s.skip(k, err.Error())
		return
	}
	s.finish(k, ended{what: Ended, outcome: out, cpuBefore: before.CPUSeconds, evaluator: own.Evaluator, placer: placer})
}

// begin returns the problem as method m, which begins now, is given it.
func (s *searcher) begin(m *Method, b plan.Budget) *plan.Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.problem.Problem
	own.Evaluator = s.problem.Evaluator.Clone()
	if s.host.Rollouts != nil && m.Kind == plan.Policy {
		own.Rollouts = s.host.Rollouts()
	}
	own.Budget, own.Seed, own.Clock = b, plan.StreamSeed(s.c.Seed, m.Name), s.host.Clock
	s.cpuTimes.start(m.Name)
	return &own
}

// startOf returns what method k may start from.
func (s *searcher) startOf(k int) (start Start) {
	m := &s.methods[k]
	if s.c.Budget.Evaluations == 0 {
		if r, ok := s.host.Memory.Running[m.Name]; ok {
			start.Earlier, start.Checkpoint = r.Outcome, r.Checkpoint
			if r.Outcome != nil {
				start.Decision = r.Outcome.Decision
			}
		}
	}
	if m.Stage >= StageShare && start.Device == nil {
		if best := s.best(); best != nil {
			start.Decision = best.Decision
		}
	}
	return start
}

// ended is a method that has come to an outcome.
type ended struct {
	what      What // Ended or Recalled
	outcome   *plan.Outcome
	cpuBefore float64 // seconds of processor time that it took in an earlier run
	evaluator plan.Evaluator
	placer    plan.Placer // nil for what is recalled
}

// finish judges what method k came to and makes its row.
func (s *searcher) finish(k int, x ended) {
	m, out := &s.methods[k], x.outcome
	r := &Row{Method: m.Name, Kind: m.Kind, Evaluations: out.Evaluations, Notes: out.Notes, Decision: out.Decision}
	r.Device = slices.Clone(out.Device)
	if r.Priority == nil {
		r.Priority = s.problem.Priority
	}
	if m.Note != "" {
		r.Notes = append(slices.Clip(r.Notes), m.Note)
	}
	check := plan.Plan{Decision: r.Decision}
	if err := check.Check(s.problem.Graph, s.problem.Machine); err != nil {
		s.fail(fmt.Errorf("method %s broke its contract: %w", m.Name, err))
		return
	}
	r.Score = x.evaluator.Evaluate(r.Decision)
	if s.host.Measurer != nil {
		predicted := r.Score
		r.Predicted = &predicted
		if score, err := s.host.Measurer.Measure(r.Decision, predicted); err != nil {
			r.Unmeasured = err.Error()
		} else {
			r.Score = score
		}
	}
	if !r.Score.Runs() {
		s.skip(k, "it came to no placement whose ops all run where they are")
		return
	}
	s.mu.Lock()
	r.CPUSeconds = x.cpuBefore + s.cpuTimes.seconds(m.Name)
	s.rows[k] = r
	s.mu.Unlock()
	s.tell(k, Event{What: x.what, Evaluations: r.Evaluations, CPUSeconds: r.CPUSeconds, Score: r.Score, Decision: plan.Decision{Device: r.Device}, Outcome: out, Placer: x.placer})
}

func (s *searcher) skip(k int, reason string) {
	reason = strings.TrimPrefix(reason, s.methods[k].Name+": ")
	s.mu.Lock()
	s.skipped[k] = &Skip{Method: s.methods[k].Name, Kind: s.methods[k].Kind, Reason: reason}
	s.mu.Unlock()
	s.tell(k, Event{What: Skipped, Reason: reason})
}

// tell completes e for method k and passes it on.
func (s *searcher) tell(k int, e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Method, e.Kind, e.Seconds = s.methods[k].Name, s.methods[k].Kind, s.host.Clock()
	e.Cut = s.ctx.Err() != nil
	if e.CPUSeconds == 0 {
		e.CPUSeconds = s.cpuTimes.seconds(e.Method)
	}
	if e.Device != nil && e.Score.Feasible() && s.firstFeasible < 0 {
		s.firstFeasible = e.Seconds
	}
	s.observe(e)
}

// announce passes on an event of no method, from outside of the stages.
func (s *searcher) announce(e Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.Seconds = s.host.Clock()
	s.observe(e)
}

// observe passes e on; s.mu is held.
func (s *searcher) observe(e Event) {
	if s.host.Observe == nil || s.err != nil {
		return
	}
	if err := s.host.Observe(e); err != nil {
		s.err = err
		s.cancel()
	}
}

func (s *searcher) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	s.cancel()
}

// best returns the best row so far, the first of equals, or nil.
func (s *searcher) best() *Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bestOf(s.rows)
}
