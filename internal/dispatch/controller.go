package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ControllerConfig describes the side of the search.
type ControllerConfig struct {
	// Run names the run; results of other runs are not heard.
	Run string
	// Patience is how long a simulation by a worker may take, before the controller does it
	// itself. Time in the queue does not count, unless for that long no simulation of the
	// run is begun or answered.
	Patience time.Duration
	// Longest is the same of a measurement, which the controller cannot do itself, and
	// Absence how long it is waited for while there are no workers for it. They bound a
	// failure, not a measurement: a worker that dies is replaced long before.
	Longest, Absence time.Duration
	// Age is how long the hub keeps a graph, a machine and the like after the last search that
	// refers to it, which refreshes them meanwhile.
	Age time.Duration
	// Clock returns seconds since some start.
	Clock func() float64
	// Disk lets the hub keep jobs on disk: for a hub of its own, which may be restarted.
	Disk bool
}

// DefaultController returns the configuration for an embedded hub.
func DefaultController(run string, clock func() float64) ControllerConfig {
	return ControllerConfig{Run: run, Patience: 20 * time.Second, Longest: 10 * time.Minute, Absence: time.Minute, Age: objectAge, Clock: clock}
}

// Controller submits jobs and hands each result to whoever waits for it, once.
type Controller struct {
	c       ControllerConfig
	ctx     context.Context // ends when the search does
	nc      *nats.Conn
	js      jetstream.JetStream
	objects jetstream.ObjectStore
	stop    []func()

	mu      sync.Mutex
	next    int
	waiting map[string]*pending
	moved   map[Kind]float64 // when a job of that kind was last begun or answered, on the clock
	workers map[string]*workerState
	made    map[string]bool // objects and queues that the hub has
	kept    []string        // names of the objects among them
	stats   stats
}

// pending is a job that is waited for. The controller's lock guards what it is to change.
type pending struct {
	id     string
	kind   Kind
	answer chan result
	sent   float64 // on the controller's clock
	// by are the workers that have begun it, and begun when the last of them did, as far
	// as their signs of life tell.
	by    []string
	begun float64
}

type workerState struct {
	beat
	heard float64 // on the controller's clock
}

// stats counts what became of the evaluations of a run. Every evaluation is
// counted in one of Remote and Local.
type stats struct {
	Remote int // answered by a worker
	Local  int // done by the controller: no worker, no answer in time, or no way to submit
	// Unheard counts answers that nobody waited for any more: second answers of a job,
	// and answers after the controller's patience ended.
	Unheard int
}

// WorkerStatus is what a worker last said of itself.
type WorkerStatus struct {
	Name  string
	Slots int
	Done  int64
	// Identity is what the worker's measurements depend on; empty for simulations.
	Identity string
}

// NewController connects to a hub and makes its streams. It lives until Close or
// the end of ctx.
func NewController(ctx context.Context, a Address, c ControllerConfig) (*Controller, error) {
	nc, err := a.connect("placer search")
	if err != nil {
		return nil, err
	}
	x := &Controller{c: c, ctx: ctx, nc: nc, waiting: map[string]*pending{}, moved: map[Kind]float64{}, workers: map[string]*workerState{}, made: map[string]bool{}}
	if err := x.open(); err != nil {
		nc.Close()
		return nil, fmt.Errorf("hub %s: %w", a.name(), err)
	}
	return x, nil
}

func (x *Controller) open() (err error) {
	if x.js, err = jetstream.New(x.nc); err != nil {
		return err
	}
	storage := jetstream.MemoryStorage
	if x.c.Disk {
		storage = jetstream.FileStorage
	}
	ctx, cancel := context.WithTimeout(x.ctx, 2*dialTimeout)
	defer cancel()
	for _, s := range []jetstream.StreamConfig{
		{Name: jobStream, Subjects: []string{jobPrefix + ">"}, Retention: jetstream.WorkQueuePolicy, Storage: storage, Duplicates: dedupe, MaxAge: time.Hour},
		{Name: resultStream, Subjects: []string{resultPrefix + ">"}, Storage: storage, Duplicates: dedupe, MaxAge: 10 * time.Minute, MaxMsgs: mostResults},
	} {
		if _, err := x.js.CreateOrUpdateStream(ctx, s); err != nil {
			return err
		}
	}
	if x.objects, err = x.js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: objectBucket, Storage: storage, TTL: x.c.Age}); err != nil {
		return err
	}
	results, err := x.js.OrderedConsumer(ctx, resultStream, jetstream.OrderedConsumerConfig{FilterSubjects: []string{resultPrefix + x.c.Run}, DeliverPolicy: jetstream.DeliverNewPolicy})
	if err != nil {
		return err
	}
	heard, err := results.Consume(func(m jetstream.Msg) { x.answer(m.Data()) })
	if err != nil {
		return err
	}
	x.stop = append(x.stop, heard.Stop)
	beats, err := x.nc.Subscribe(beatPrefix+">", func(m *nats.Msg) { x.hear(m.Data) })
	if err != nil {
		return err
	}
	x.stop = append(x.stop, func() { _ = beats.Unsubscribe() })
	refreshing, end := context.WithCancel(x.ctx)
	x.stop = append(x.stop, end)
	go x.refresh(refreshing)
	return x.nc.Flush()
}

// refresh keeps the objects of the search from growing old, until ctx ends. One that cannot be
// refreshed is tried again before it is too old.
func (x *Controller) refresh(ctx context.Context) {
	tick := time.NewTicker(x.c.Age / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		x.mu.Lock()
		kept := slices.Clone(x.kept)
		x.mu.Unlock()
		for _, name := range kept {
			within, cancel := context.WithTimeout(ctx, 2*dialTimeout)
			_ = refreshObject(within, x.js, x.objects, name, x.c.Age/2)
			cancel()
		}
	}
}

// Close takes back the jobs that nobody has taken, and leaves the hub.
func (x *Controller) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s, err := x.js.Stream(ctx, jobStream); err == nil {
		_ = s.Purge(ctx, jetstream.WithPurgeSubject(jobPrefix+"*."+x.c.Run))
	}
	for _, stop := range x.stop {
		stop()
	}
	x.nc.Close()
}

// Workers returns the workers of kind that show signs of life, by name.
func (x *Controller) Workers(kind Kind) []WorkerStatus {
	x.mu.Lock()
	defer x.mu.Unlock()
	var all []WorkerStatus
	for _, name := range slices.Sorted(maps.Keys(x.workers)) {
		if w := x.workers[name]; x.c.Clock()-w.heard < beatExpiry.Seconds() && slices.Contains(w.Kinds, kind) {
			all = append(all, WorkerStatus{w.Worker, w.Slots, w.Done, w.Identity})
		}
	}
	return all
}

// Await waits until there are n workers of kind, or ctx ends.
func (x *Controller) Await(ctx context.Context, kind Kind, n int) error {
	for len(x.Workers(kind)) < n {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(beatPeriod / 5):
		}
	}
	return nil
}

// Stats returns the counts so far.
func (x *Controller) Stats() stats {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.stats
}

func (x *Controller) hear(data []byte) {
	var b beat
	if json.Unmarshal(data, &b) != nil || b.Worker == "" {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if b.Leaves {
		delete(x.workers, b.Worker)
		return
	}
	now := x.c.Clock()
	x.workers[b.Worker] = &workerState{b, now}
	for _, id := range b.Doing {
		if p := x.waiting[id]; p != nil && !slices.Contains(p.by, b.Worker) {
			p.by, p.begun = append(p.by, b.Worker), now
			x.moved[p.kind] = now
		}
	}
}

// answer hands a result to the one who waits for it.
func (x *Controller) answer(data []byte) {
	var r result
	if json.Unmarshal(data, &r) != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if p, ok := x.waiting[r.ID]; ok {
		delete(x.waiting, r.ID)
		x.moved[p.kind] = x.c.Clock()
		p.answer <- r // has room for one
	} else {
		x.stats.Unheard++
	}
}

// since returns from when on the controller's patience with p counts: from when a worker
// began it and, as long as none has, from when any job of its kind was begun or answered.
func (x *Controller) since(p *pending) float64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(p.by) > 0 {
		return p.begun
	}
	return max(p.sent, x.moved[p.kind])
}

// forget gives p up.
func (x *Controller) forget(p *pending) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.waiting, p.id)
}

// once makes what the hub is to have under name, unless it has it already.
func (x *Controller) once(name string, make func(ctx context.Context) error) error {
	x.mu.Lock()
	known := x.made[name]
	x.mu.Unlock()
	if known {
		return nil
	}
	ctx, cancel := context.WithTimeout(x.ctx, 2*dialTimeout)
	defer cancel()
	if err := make(ctx); err != nil {
		return err
	}
	x.mu.Lock()
	x.made[name] = true
	x.mu.Unlock()
	return nil
}

// store makes sure that the hub has an object and returns its name.
func (x *Controller) store(data []byte) (string, error) {
	name := objectName(data)
	return name, x.once(name, func(ctx context.Context) error {
		err := refreshObject(ctx, x.js, x.objects, name, x.c.Age/2)
		if err != nil { // it is not there, or no longer whole
			err = putObject(ctx, x.objects, name, data, x.nc.MaxPayload())
		}
		if err == nil {
			x.mu.Lock()
			x.kept = append(x.kept, name)
			x.mu.Unlock()
		}
		return err
	})
}

// queue makes sure that the hub has the queue of kind.
func (x *Controller) queue(kind Kind) error {
	return x.once("queue "+string(kind), func(ctx context.Context) error {
		_, err := x.js.CreateOrUpdateConsumer(ctx, jobStream, jetstream.ConsumerConfig{
			Durable: string(kind), FilterSubject: jobPrefix + string(kind) + ".>", AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: ackWait, MaxDeliver: maxDeliver, MaxAckPending: 4096,
		})
		return err
	})
}

// submit sends a job, which is waited for from then on, until forget.
func (x *Controller) submit(kind Kind, j *job) (*pending, error) {
	p := &pending{kind: kind, answer: make(chan result, 1), sent: x.c.Clock()}
	x.mu.Lock()
	x.next++
	p.id = fmt.Sprintf("%s-%d", x.c.Run, x.next)
	j.Run, j.ID = x.c.Run, p.id
	x.waiting[p.id] = p
	x.mu.Unlock()
	data, err := j.encode(nil)
	if err == nil {
		ctx, cancel := context.WithTimeout(x.ctx, dialTimeout)
		defer cancel()
		_, err = x.js.Publish(ctx, jobPrefix+string(kind)+"."+x.c.Run, data, jetstream.WithMsgID(j.ID))
	}
	if errors.Is(err, nats.ErrMaxPayload) {
		err = fmt.Errorf("job of %d bytes with its header is more than the hub's limit of %d", len(data), x.nc.MaxPayload())
	}
	if err != nil {
		x.forget(p)
		return nil, err
	}
	return p, nil
}
