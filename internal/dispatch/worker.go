package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"placer/internal/faults"
	"placer/plan"
)

// MostSlots is the most slots of a worker.
const MostSlots = 4096

// WorkerConfig describes a worker.
type WorkerConfig struct {
	Name  string
	Kinds []Kind
	// Slots is how many jobs the worker does at once: cores for simulations, 1 for
	// measurements.
	Slots int
	// Evaluator makes the evaluator of a problem. Where it is a Measurer, its
	// measurements are the answers.
	Evaluator func(Problem) (plan.Evaluator, error)
	// Identity, of a worker that measures, says what its measurements depend on beside
	// the machine: hosts that agree in it may stand in for each other.
	Identity string
	// Log, if not nil, is told in a line what happens.
	Log func(format string, a ...any)
}

// measurer is an evaluator whose evaluations can fail, or be interrupted.
type measurer interface {
	Measure(ctx context.Context, d plan.Decision) (plan.Score, error)
}

// validate reports every fault.
func (c WorkerConfig) validate() error {
	var errs faults.List
	errs.If(c.Name == "" || len(c.Kinds) == 0 || c.Evaluator == nil, "worker: name %q, %d kinds, evaluator %t: want all", c.Name, len(c.Kinds), c.Evaluator != nil)
	errs.If(c.Slots < 1 || c.Slots > MostSlots, "worker: %d slots, want 1 to %d", c.Slots, MostSlots)
	return errors.Join(errs...)
}

// worker does jobs until its context ends.
type worker struct {
	c    WorkerConfig
	nc   *nats.Conn
	js   jetstream.JetStream
	done atomic.Int64
	mu   sync.Mutex
	// ready are the evaluators of the last problems, oldest first.
	ready []*readyProblem
	ranks map[string][]int32
	doing map[string]int // jobs under way, by their ids: how often each
}

type readyProblem struct {
	name string
	once sync.Once
	err  error
	free chan plan.Evaluator // one for each slot, nil until it is needed
	from plan.Evaluator
	mu   sync.Mutex // guards from
}

// keepProblems is how many problems a worker keeps ready.
const keepProblems = 3

// Work does jobs of the hub at a until ctx ends, which is no error, or the hub refuses the
// worker. A hub that goes away is waited for.
func Work(ctx context.Context, a Address, c WorkerConfig) error {
	if err := c.validate(); err != nil {
		return err
	}
	if c.Log == nil {
		c.Log = func(string, ...any) {}
	}
	w := &worker{c: c, ranks: map[string][]int32{}, doing: map[string]int{}}
	until := ctx
	ctx, end := context.WithCancelCause(until)
	defer end(nil)
	nc, err := a.connect("placer worker "+c.Name, append(tellLosses(ctx, c.Log), nats.ClosedHandler(func(nc *nats.Conn) {
		end(a.refusal(cmp.Or(nc.LastError(), nats.ErrConnectionClosed)))
	}))...)
	if err != nil {
		return err
	}
	defer nc.Close()
	w.nc = nc
	if w.js, err = jetstream.New(nc); err != nil {
		return err
	}
	var wait sync.WaitGroup
	wait.Go(func() { w.beat(ctx) })
	slots := make(chan struct{}, c.Slots)
	for _, k := range c.Kinds {
		wait.Go(func() { w.serve(ctx, k, slots) })
	}
	wait.Wait()
	if until.Err() == nil {
		return context.Cause(ctx)
	}
	return nil
}

// tellLosses returns the options of a connection that tell log, until ctx ends, what the hub
// refuses, when it goes away, why it cannot be reached at first, and when it is back.
func tellLosses(ctx context.Context, log func(string, ...any)) []nats.Option {
	var told atomic.Bool
	return []nats.Option{
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log("hub: %v", err) }),
		nats.DisconnectErrHandler(func(*nats.Conn, error) {
			if ctx.Err() == nil {
				told.Store(false)
				log("hub: the connection is lost; waiting for it")
			}
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) {
			if !told.Swap(true) {
				log("hub: %v", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log("hub: connected again") }),
	}
}

// beat tells the controllers that the worker lives.
func (w *worker) beat(ctx context.Context) {
	tick := time.NewTicker(beatPeriod)
	defer tick.Stop()
	subject := beatPrefix + objectName([]byte(w.c.Name))[:16] // a name may have blanks, a subject not
	say := func(leaves bool) {
		data, err := json.Marshal(beat{Worker: w.c.Name, Kinds: w.c.Kinds, Slots: w.c.Slots, Done: w.done.Load(), Leaves: leaves, Identity: w.c.Identity, Doing: w.underWay()})
		if err == nil {
			_ = w.nc.Publish(subject, data) // the next one comes soon
		}
	}
	for say(false); ; say(false) {
		select {
		case <-ctx.Done():
			say(true)
			_ = w.nc.FlushTimeout(time.Second)
			return
		case <-tick.C:
		}
	}
}

// begins notes a job that is under way until the function that it returns is called.
func (w *worker) begins(id string) (ends func()) {
	add := func(n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.doing[id] += n; w.doing[id] == 0 {
			delete(w.doing, id)
		}
	}
	add(1)
	return func() { add(-1) }
}

// underWay returns the jobs that are.
func (w *worker) underWay() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.doing))
}

// serve takes jobs of kind until ctx ends. A queue that is not there, because no
// search has begun or the hub was restarted, is waited for.
func (w *worker) serve(ctx context.Context, kind Kind, slots chan struct{}) {
	told := false
	for ctx.Err() == nil {
		err := w.take(ctx, kind, slots)
		if ctx.Err() != nil {
			return
		}
		if !told {
			told = true
			w.c.Log("waiting for a search that needs %s (%v)", kind, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(beatPeriod):
		}
	}
}

// take takes jobs until something fails. No more are asked for than there are
// slots, and one to follow: a slow worker keeps none from a fast one.
func (w *worker) take(ctx context.Context, kind Kind, slots chan struct{}) error {
	consumer, err := w.js.Consumer(ctx, jobStream, string(kind))
	if err != nil {
		return err
	}
	jobs, err := consumer.Messages(jetstream.PullMaxMessages(1), jetstream.PullExpiry(2*time.Second), jetstream.PullHeartbeat(time.Second))
	if err != nil {
		return err
	}
	var wait sync.WaitGroup
	defer wait.Wait()
	stop := context.AfterFunc(ctx, jobs.Stop)
	defer stop()
	defer jobs.Stop()
	for {
		slots <- struct{}{}
		m, err := jobs.Next()
		if err != nil {
			<-slots
			return err
		}
		wait.Go(func() {
			defer func() { <-slots }()
			w.do(ctx, m)
		})
	}
}

// do does one job: answer first, then acknowledge. A worker that dies in between
// leaves a second answer, which the hub drops by its id.
func (w *worker) do(ctx context.Context, m jetstream.Msg) {
	j, err := decodeJob(m.Data())
	if err != nil {
		w.c.Log("%v", err)
		_ = m.TermWithReason(err.Error())
		return
	}
	stop := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		tick := time.NewTicker(signOfLife)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				_ = m.InProgress()
			}
		}
	})
	r := result{ID: j.ID, Worker: w.c.Name}
	s, evaluated := w.evaluate(ctx, j)
	close(stop)
	wait.Wait()
	if ctx.Err() != nil { // another worker may have it at once
		_ = m.Nak()
		return
	}
	if evaluated != nil {
		r.Error = evaluated.Error()
		w.c.Log("job %s: %v", j.ID, evaluated)
	}
	r.Seconds, r.Overflow = s.Value, int64(s.Overflow)
	data, err := json.Marshal(r)
	if err != nil { // no number
		r.Seconds, r.Error = 0, err.Error()
		data, _ = json.Marshal(r)
	}
	if _, err := w.js.Publish(ctx, resultPrefix+j.Run, data, jetstream.WithMsgID(j.ID)); err != nil {
		w.c.Log("job %s: %v", j.ID, err)
		_ = m.NakWithDelay(beatPeriod)
		return
	}
	w.done.Add(1)
	_ = m.Ack() // if it is lost, the job comes again and its answer is dropped
	var refused *refusal
	if errors.As(evaluated, &refused) { // quick answers of this kind would draw all jobs to this worker
		select {
		case <-ctx.Done():
		case <-time.After(refusalPause):
		}
	}
}

// refusal is why a worker evaluates no placement of a problem.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

// evaluate returns the score of j.
func (w *worker) evaluate(ctx context.Context, j *job) (s plan.Score, err error) {
	defer func() { // a placement that is not of its graph
		if x := recover(); x != nil {
			err = fmt.Errorf("%v", x)
		}
	}()
	p := w.open(ctx, j.Problem)
	if p.err != nil {
		w.close(p)
		return s, p.err
	}
	ranks, err := w.priority(ctx, j.Priority)
	if err != nil {
		return s, err
	}
	var e plan.Evaluator
	select {
	case e = <-p.free:
	case <-ctx.Done():
		return s, ctx.Err()
	}
	if e == nil {
		p.mu.Lock()
		e = p.from.Clone()
		p.mu.Unlock()
	}
	defer func() { p.free <- e }()
	n := len(e.OpSeconds(0))
	if ranks != nil && n != len(ranks) {
		return s, fmt.Errorf("%d ranks, the graph has %d ops", len(ranks), n)
	}
	if err := j.unpack(n); err != nil {
		return s, err
	}
	if j.Ranked {
		ranks = j.ranks
	}
	defer w.begins(j.ID)()
	if m, ok := e.(measurer); ok {
		return m.Measure(ctx, plan.Decision{Device: j.device, Priority: ranks, Fusion: j.fusion})
	}
	return e.Evaluate(plan.Decision{Device: j.device, Priority: ranks, Fusion: j.fusion}), nil
}

// open returns the problem of that name, made ready.
func (w *worker) open(ctx context.Context, name string) *readyProblem {
	w.mu.Lock()
	at := slices.IndexFunc(w.ready, func(x *readyProblem) bool { return x.name == name })
	if at < 0 {
		w.ready = append(w.ready, &readyProblem{name: name, free: make(chan plan.Evaluator, w.c.Slots)})
		w.ready = w.ready[max(0, len(w.ready)-keepProblems):]
		at = len(w.ready) - 1
	}
	p := w.ready[at]
	w.mu.Unlock()
	p.once.Do(func() {
		defer func() { // else nobody would know that there is no evaluator to wait for
			if x := recover(); x != nil {
				p.err = fmt.Errorf("%v", x)
			}
		}()
		if p.from, p.err = w.load(ctx, name); p.err != nil {
			return
		}
		for range w.c.Slots {
			p.free <- nil
		}
	})
	return p
}

// close forgets a problem that could not be made ready, so that the next job
// tries again.
func (w *worker) close(p *readyProblem) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ready = slices.DeleteFunc(w.ready, func(x *readyProblem) bool { return x == p })
}

// load fetches a problem and makes its evaluator.
func (w *worker) load(ctx context.Context, name string) (plan.Evaluator, error) {
	text, err := getObject(ctx, w.js, name)
	if err != nil {
		return nil, err
	}
	var p problem
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("problem %.12s: %w", name, err)
	}
	of := Problem{Kind: p.Kind, Settings: p.Settings}
	if of.Graph, err = getObject(ctx, w.js, p.Graph); err != nil {
		return nil, err
	}
	if of.Machine, err = getObject(ctx, w.js, p.Machine); err != nil {
		return nil, err
	}
	e, err := w.c.Evaluator(of)
	if err != nil {
		return nil, &refusal{err}
	}
	w.c.Log("graph %.12s is ready for %s", p.Graph, p.Kind)
	return e, nil
}

// priority returns the ranks of the object of that name; nil for none.
func (w *worker) priority(ctx context.Context, name string) ([]int32, error) {
	if name == "" {
		return nil, nil
	}
	w.mu.Lock()
	ranks, ok := w.ranks[name]
	w.mu.Unlock()
	if ok {
		return ranks, nil
	}
	data, err := getObject(ctx, w.js, name)
	if err != nil {
		return nil, err
	}
	if ranks, err = decodeRanks(data); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.ranks) >= 64 {
		clear(w.ranks)
	}
	w.ranks[name] = ranks
	return ranks, nil
}
