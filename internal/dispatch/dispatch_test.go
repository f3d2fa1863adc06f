package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"placer/internal/dispatch"
	"placer/plan"
	"placer/units"
)

// sum scores a placement by a number that follows from every decision. It
// stands in for the simulator, which is tested elsewhere.
type sum struct {
	ops   int
	calls *atomic.Int64
	// hold, if not nil, is called in the n-th evaluation, from 1 on; ctx is that of
	// the worker.
	hold func(ctx context.Context, n int64)
	ctx  context.Context
}

func (s sum) Evaluate(d plan.Decision) plan.Score {
	if len(d.Device) != s.ops {
		panic("wrong length")
	}
	if n := s.calls.Add(1); s.hold != nil {
		s.hold(s.ctx, n)
	}
	x := 1.0
	for i, on := range d.Device {
		x += float64(on) * float64(i+1)
		if d.Priority != nil {
			x += float64(d.Priority[i]) / 3
		}
		if d.Fusion != nil {
			x += float64(d.Fusion[i]) / 5
		}
	}
	return plan.Score{Value: x / 7, Overflow: units.Bytes(d.Device[0] / 200)}
}

func (s sum) Clone() plan.Evaluator   { return s }
func (s sum) OpSeconds(int) []float64 { return make([]float64, s.ops) }
func newSum(n int) sum                { return sum{ops: n, calls: new(atomic.Int64)} }

// held is newSum with hold.
func held(n int, hold func(ctx context.Context, n int64)) sum {
	s := newSum(n)
	s.hold = hold
	return s
}

func placement(ops, k int) (d []uint8) { d = make([]uint8, ops); d[k%ops] = uint8(k); return d }
func ranks(ops, k int) (p []int32)     { p = make([]int32, ops); p[0] = int32(k); return p }
func expect(s sum, k int) plan.Score {
	return newSum(s.ops).Evaluate(plan.Decision{Device: placement(s.ops, k), Priority: ranks(s.ops, k%3)})
}
func kinds(k ...dispatch.Kind) (all []dispatch.Kind) { return k }

// clock returns seconds since now.
func clock() func() float64 {
	start := time.Now()
	return func() float64 { return time.Since(start).Seconds() }
}

// hub starts a hub for the test.
func hub(t testing.TB, c dispatch.HubConfig) *dispatch.Hub {
	t.Helper()
	if c.Store == "" {
		c.Store = t.TempDir()
	}
	h, err := dispatch.StartHub(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

// started runs a worker until the test ends or stop is called, which waits for it.
func started(ctx context.Context, cancel context.CancelFunc, t testing.TB, a dispatch.Address, c dispatch.WorkerConfig) (stop func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- dispatch.Work(ctx, a, c) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("worker %s: %v", c.Name, err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// work starts a worker and returns what stops it and waits.
func work(t testing.TB, a dispatch.Address, name string, s sum, slots int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s.ctx = ctx
	return started(ctx, cancel, t, a, dispatch.WorkerConfig{Name: name, Kinds: kinds(dispatch.Roofline), Slots: slots,
		Evaluator: func(p dispatch.Problem) (plan.Evaluator, error) {
			if string(p.Graph) != "graph" || string(p.Machine) != "machine" || p.Settings != "such" {
				return nil, fmt.Errorf("problem %+v", p)
			}
			return s, nil
		}})
}

func controller(t testing.TB, a dispatch.Address, change func(*dispatch.ControllerConfig)) *dispatch.Controller {
	t.Helper()
	c := dispatch.DefaultController("run", clock())
	if change != nil {
		change(&c)
	}
	x, err := dispatch.NewController(context.Background(), a, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.Close)
	return x
}

func remote(t testing.TB, x *dispatch.Controller, local sum) *dispatch.Remote {
	t.Helper()
	r, err := x.Remote(dispatch.Problem{Kind: dispatch.Roofline, Graph: []byte("graph"), Machine: []byte("machine"), Settings: "such", Priority: ranks(local.ops, 0)}, local)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func await(t testing.TB, x *dispatch.Controller, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := x.Await(ctx, dispatch.Roofline, n); err != nil {
		t.Fatalf("%d workers: %v", n, err)
	}
}

// evaluateAll has n placements evaluated by parallel clones of r and checks
// every score.
func evaluateAll(t testing.TB, r *dispatch.Remote, local sum, n, parallel int) {
	t.Helper()
	var wait sync.WaitGroup
	for g := range parallel {
		e := r.Clone()
		wait.Go(func() {
			for k := g; k < n; k += parallel {
				if got, want := e.Evaluate(plan.Decision{Device: placement(local.ops, k), Priority: ranks(local.ops, k%3)}), expect(local, k); got != want {
					t.Errorf("placement %d: %v, want %v", k, got, want)
				}
			}
		})
	}
	wait.Wait()
}

func TestScoresAreTheWorkers(t *testing.T) {
	a := dispatch.Address{Hub: hub(t, dispatch.HubConfig{})}
	x := controller(t, a, nil)
	local, far := newSum(40), newSum(40)
	work(t, a, "a", far, 2)
	work(t, a, "b", far, 1)
	await(t, x, 2)
	r := remote(t, x, local)
	fusion := placement(40, 7)
	if got, want := r.Evaluate(plan.Decision{Device: placement(40, 1), Fusion: fusion}), local.Evaluate(plan.Decision{Device: placement(40, 1), Fusion: fusion}); got != want {
		t.Errorf("fused: %v, want %v", got, want)
	}
	if r.Parallel() != 6 {
		t.Errorf("%d at once for three slots", r.Parallel())
	}
	evaluateAll(t, r, local, 200, 6)
	if s := x.Stats(); s.Remote != 201 || s.Local != 0 || s.Unheard != 0 || far.calls.Load() != 201 || local.calls.Load() != 1 {
		t.Errorf("%+v, failure %q, %d evaluated by workers, %d here: want 201 by workers, each once", s, r.Failure(), far.calls.Load(), local.calls.Load())
	}
	var done int64
	for _, w := range x.Workers(dispatch.Roofline) {
		done += w.Done
	}
	if done > 201 {
		t.Errorf("workers report %d jobs", done)
	}
}

// TestObjectsGrowOld: what a search has stored is there as long as the search is, however old,
// and gone a while after it. Results have a bound.
func TestObjectsGrowOld(t *testing.T) {
	const age = 2 * time.Second
	h := hub(t, dispatch.HubConfig{})
	a := dispatch.Address{Hub: h}
	aged := func(c *dispatch.ControllerConfig) { c.Age = age }
	first, other := controller(t, a, aged), controller(t, a, aged)
	r := remote(t, first, newSum(40))
	if _, err := other.Remote(dispatch.Problem{Kind: dispatch.Roofline, Graph: []byte("another graph"), Machine: []byte("machine"), Settings: "such"}, newSum(40)); err != nil {
		t.Fatal(err)
	}
	nc, err := dispatch.Connect(a)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	objects := func() (n int) {
		store, err := js.ObjectStore(t.Context(), "placer")
		if err != nil {
			t.Fatal(err)
		}
		all, err := store.List(t.Context())
		if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
			t.Fatal(err)
		}
		return len(all)
	}
	if n := objects(); n != 6 { // two graphs, one machine, two problems, ranks
		t.Fatalf("%d objects, want 6", n)
	}
	other.Close()
	for deadline := time.Now().Add(20 * age); objects() != 4; time.Sleep(age / 10) {
		if time.Now().After(deadline) {
			t.Fatalf("%d objects after those of one search were not referred to for %v, want 4", objects(), 20*age)
		}
	}
	time.Sleep(2 * age)
	far := newSum(40)
	work(t, a, "late", far, 1)
	await(t, first, 1)
	evaluateAll(t, r, newSum(40), 10, 1)
	if s := first.Stats(); s.Remote != 10 {
		t.Errorf("of 10 evaluations by objects older than their age a worker made %d: %q", s.Remote, r.Failure())
	}
	first.Close()
	for deadline := time.Now().Add(20 * age); objects() > 0; time.Sleep(age / 10) {
		if time.Now().After(deadline) {
			t.Fatalf("%d objects are left of searches that have ended", objects())
		}
	}
	results, err := js.Stream(t.Context(), "RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	if c := results.CachedInfo().Config; c.MaxMsgs <= 0 || c.Discard != jetstream.DiscardOld {
		t.Errorf("results: at most %d, %v", c.MaxMsgs, c.Discard)
	}
}

// However many ranks are sampled, the hub keeps those of the problem alone.
func TestSampledRanksAreNotKept(t *testing.T) {
	a := dispatch.Address{Hub: hub(t, dispatch.HubConfig{})}
	x := controller(t, a, nil)
	local := newSum(300)
	work(t, a, "w", newSum(local.ops), 2)
	await(t, x, 1)
	r := remote(t, x, local)
	fusion := placement(local.ops, 9)
	for k := range 40 {
		d := plan.Decision{Device: placement(local.ops, k), Priority: ranks(local.ops, k<<20-k)}
		if k%2 == 1 {
			d.Fusion = fusion
		}
		if got, want := r.Evaluate(d), local.Evaluate(d); got != want {
			t.Errorf("placement %d: %v, want %v", k, got, want)
		}
	}
	if s := x.Stats(); s.Remote != 40 {
		t.Errorf("%+v, failure %q: want all by the worker", s, r.Failure())
	}
	nc, err := dispatch.Connect(a)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	store, err := js.ObjectStore(t.Context(), "placer")
	if err != nil {
		t.Fatal(err)
	}
	if all, err := store.List(t.Context()); err != nil || len(all) != 4 {
		t.Errorf("%d objects, %v, want graph, machine, problem and its ranks", len(all), err)
	}
}

// A job is waited for from when a worker begins it: what it stands in the queue before
// does not count.
func TestPatienceIsOfOneEvaluation(t *testing.T) {
	a := dispatch.Address{Hub: hub(t, dispatch.HubConfig{})}
	var now atomic.Int64 // on the controller's clock, in seconds
	x := controller(t, a, func(c *dispatch.ControllerConfig) {
		c.Patience, c.Clock = 4*time.Second, func() float64 { return float64(now.Load()) }
	})
	local := newSum(10)
	const looks = 700 * time.Millisecond                    // in which worker and controller have told and looked
	work(t, a, "w", held(10, func(context.Context, int64) { // takes 3 s of that clock
		time.Sleep(looks)
		now.Add(3)
		time.Sleep(looks)
	}), 1)
	await(t, x, 1)
	r := remote(t, x, local)
	evaluateAll(t, r, local, 2, 2)
	if s := x.Stats(); s.Remote != 2 || s.Unheard != 0 {
		t.Errorf("%+v, failure %q: want both by the worker, 3 s each, whose patience is 4 s", s, r.Failure())
	}
}

// cloned counts the clones of an evaluator.
type cloned struct {
	sum
	clones *atomic.Int64
}

func (c cloned) Clone() plan.Evaluator { c.clones.Add(1); return c.sum }

// Clones of a remote evaluator share the local one until they need it.
func TestNoLocalEvaluatorForRemoteWork(t *testing.T) {
	a := dispatch.Address{Hub: hub(t, dispatch.HubConfig{})}
	x := controller(t, a, nil)
	local := cloned{newSum(10), new(atomic.Int64)}
	stop := work(t, a, "w", newSum(10), 2)
	await(t, x, 1)
	r, err := x.Remote(dispatch.Problem{Kind: dispatch.Roofline, Graph: []byte("graph"), Machine: []byte("machine"), Settings: "such"}, local)
	if err != nil {
		t.Fatal(err)
	}
	evaluateAll(t, r, local.sum, 20, 4)
	if n := local.clones.Load(); n != 0 {
		t.Errorf("%d local evaluators beside a worker that does all", n)
	}
	stop()
	for len(x.Workers(dispatch.Roofline)) > 0 {
		time.Sleep(10 * time.Millisecond)
	}
	evaluateAll(t, r, local.sum, 20, 4)
	if s := x.Stats(); s.Remote != 20 || s.Local != 20 || local.clones.Load() != 4 {
		t.Errorf("%+v, %d local evaluators, want one for each of four goroutines", s, local.clones.Load())
	}
}

// A worker may be called anything.
func TestNamesOfWorkers(t *testing.T) {
	a := dispatch.Address{Hub: hub(t, dispatch.HubConfig{})}
	x := controller(t, a, nil)
	work(t, a, " my worker.. *>", newSum(10), 1)
	await(t, x, 1)
	if w := x.Workers(dispatch.Roofline); w[0].Name != " my worker.. *>" {
		t.Errorf("%+v", w)
	}
}

// Without workers the controller evaluates itself, at once.
func TestNoWorkers(t *testing.T) {
	x := controller(t, dispatch.Address{Hub: hub(t, dispatch.HubConfig{})}, nil)
	local := newSum(10)
	evaluateAll(t, remote(t, x, local), local, 20, 2)
	if s := x.Stats(); s.Local != 20 || s.Remote != 0 {
		t.Errorf("%+v, want all done by the controller", s)
	}
}

// A worker that stops in the middle of its jobs gives them back; one that hangs
// loses its job to the controller's patience.
func TestWorkersLeave(t *testing.T) {
	a := dispatch.Address{Hub: hub(t, dispatch.HubConfig{})}
	var looks atomic.Int64 // at the clock, between which a twentieth of a second passes
	x := controller(t, a, func(c *dispatch.ControllerConfig) {
		c.Patience, c.Clock = time.Second, func() float64 { return float64(looks.Add(1)) / 20 }
	})
	local := newSum(10)
	r := remote(t, x, local)
	enough := make(chan struct{})
	stop := work(t, a, "leaves", held(10, func(ctx context.Context, n int64) {
		if n == 12 {
			close(enough)
			<-ctx.Done()
		}
	}), 2)
	work(t, a, "hangs", held(10, func(ctx context.Context, _ int64) { <-ctx.Done() }), 1)
	await(t, x, 2)
	left := make(chan bool)
	go func() {
		defer close(left)
		<-enough
		stop()
	}()
	evaluateAll(t, r, local, 20, 4)
	<-left
	s := x.Stats()
	if s.Remote+s.Local != 20 || s.Local == 0 || s.Remote == 0 {
		t.Errorf("%+v, want 20 between the worker that left and the controller", s)
	}
}

// A slow worker does not keep jobs from a fast one: while the slow one has its
// first job, the fast one does many.
func TestSlowWorker(t *testing.T) {
	a := dispatch.Address{Hub: hub(t, dispatch.HubConfig{})}
	x := controller(t, a, nil)
	local, many := newSum(10), make(chan struct{})
	work(t, a, "fast", held(10, func(_ context.Context, n int64) {
		if n == 40 {
			close(many)
		}
	}), 1)
	work(t, a, "slow", held(10, func(ctx context.Context, n int64) {
		if n == 1 {
			select {
			case <-many:
			case <-ctx.Done():
			}
		}
	}), 1)
	await(t, x, 2)
	evaluateAll(t, remote(t, x, local), local, 120, 4)
	if s := x.Stats(); s.Remote != 120 {
		t.Errorf("%+v, want all by the workers", s)
	}
}

// What the hub cannot take is evaluated here: messages above its limit, and a
// store that is full.
func TestHubRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		hub  dispatch.HubConfig
		disk bool
		why  string
	}{
		{"oversized message", dispatch.HubConfig{MaxPayload: 1024}, false, "more than the hub's limit of 1024"},
		{"full store", dispatch.HubConfig{MaxStore: 256 << 10}, true, "maximum bytes exceeded|insufficient|resource"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := dispatch.Address{Hub: hub(t, c.hub)}
			x := controller(t, a, func(d *dispatch.ControllerConfig) { d.Disk = c.disk })
			const ops = 60000
			local := newSum(ops)
			r := remote(t, x, local)
			work(t, a, "w", newSum(local.ops), 1)
			await(t, x, 1)
			random := make([]uint8, ops) // does not compress
			for k := range 12 {
				state := uint32(k + 1)
				for i := range random {
					state = state*1664525 + 1013904223
					random[i] = uint8(state >> 24)
				}
				if got, want := r.Evaluate(plan.Decision{Device: random}), newSum(ops).Evaluate(plan.Decision{Device: random}); got != want {
					t.Fatalf("%v, want %v", got, want)
				}
			}
			if s := x.Stats(); s.Remote+s.Local != 12 || c.hub.MaxPayload > 0 && s.Local != 12 {
				t.Errorf("%+v", s)
			}
			ok := r.Failure() == "" && c.disk // an acknowledged job makes room again
			for _, w := range strings.Split(c.why, "|") {
				ok = ok || strings.Contains(r.Failure(), w)
			}
			if !ok {
				t.Errorf("failure %q, want %q", r.Failure(), c.why)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	kc := dispatch.DefaultKeys()
	kc.Workers = 2
	if err := dispatch.WriteKeys(dir, kc, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := dispatch.WriteKeys(dir, kc, time.Now()); err == nil || !strings.Contains(err.Error(), "never overwritten") {
		t.Errorf("second writing: %v", err)
	}
	if info, err := os.Stat(filepath.Join(dir, "worker-2", "user.seed")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("seed: %v, %v", info, err)
	}
	h := hub(t, dispatch.HubConfig{Listen: "127.0.0.1:0", Keys: filepath.Join(dir, "hub")})
	x := controller(t, dispatch.Address{Hub: h}, nil)
	local := newSum(10)
	r := remote(t, x, local)
	mine := dispatch.Address{URL: h.URL(), Keys: filepath.Join(dir, "worker-1")}
	work(t, mine, "w", newSum(10), 1)
	await(t, x, 1)
	evaluateAll(t, r, local, 20, 2)
	if s := x.Stats(); s.Remote != 20 {
		t.Errorf("%+v, want all by the worker with a key", s)
	}

	stranger := filepath.Join(t.TempDir(), "keys")
	if err := dispatch.WriteKeys(stranger, kc, time.Now()); err != nil {
		t.Fatal(err)
	}
	wc := dispatch.WorkerConfig{Name: "x", Kinds: kinds(dispatch.Roofline), Slots: 1, Evaluator: func(dispatch.Problem) (plan.Evaluator, error) { return local, nil }}
	for _, c := range []struct {
		name, keys, want string
		prepare          func()
	}{
		{"no key", "", "certificate", nil},
		{"another authority", filepath.Join(stranger, "worker-1"), "certificate", nil},
		{"unknown key", filepath.Join(stranger, "worker-2"), "does not know the key", func() {
			ca, err := os.ReadFile(filepath.Join(dir, "hub", "ca.pem"))
			if err == nil {
				err = os.WriteFile(filepath.Join(stranger, "worker-2", "ca.pem"), ca, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
		{"no folder", filepath.Join(dir, "worker-9"), "no such file", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.prepare != nil {
				c.prepare()
			}
			err := dispatch.Work(t.Context(), dispatch.Address{URL: h.URL(), Keys: c.keys}, wc)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q", err, c.want)
			}
		})
	}

	// A worker's key does a worker's work and nothing else.
	nc, err := dispatch.Connect(mine)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := js.Publish(short, "jobs.roofline.run", []byte("x")); err == nil {
		t.Error("a worker submitted a job")
	}
	if err := js.DeleteStream(short, "JOBS"); err == nil {
		t.Error("a worker deleted the stream of jobs")
	}
	if _, err := js.CreateOrUpdateConsumer(short, "JOBS", jetstream.ConsumerConfig{Durable: "mine"}); err == nil {
		t.Error("a worker made a queue")
	}
	sub, err := nc.SubscribeSync("workers.>")
	if err == nil {
		_, err = sub.NextMsg(300 * time.Millisecond)
	}
	if err == nil {
		t.Error("a worker heard another one")
	}
}

func TestHubErrors(t *testing.T) {
	for _, c := range []struct {
		name string
		hub  dispatch.HubConfig
		want string
	}{
		{"open to others without keys", dispatch.HubConfig{Listen: "0.0.0.0:0"}, "keys are needed"},
		{"no port", dispatch.HubConfig{Listen: "localhost"}, "missing port"},
		{"keys absent", dispatch.HubConfig{Listen: "127.0.0.1:0", Keys: "absent"}, "keys: open absent"},
	} {
		c.hub.Store = t.TempDir()
		if _, err := dispatch.StartHub(c.hub); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
	now, dir := time.Now(), filepath.Join(t.TempDir(), "old")
	kc := dispatch.DefaultKeys()
	kc.Valid = time.Hour
	if err := dispatch.WriteKeys(dir, kc, now.Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	expired := dispatch.HubConfig{Listen: "127.0.0.1:0", Keys: filepath.Join(dir, "hub"), Now: now, Store: t.TempDir()}
	if _, err := dispatch.StartHub(expired); err == nil || !strings.Contains(err.Error(), "expired on ") || !strings.Contains(err.Error(), "placer worker keys") {
		t.Errorf("with keys that have expired: %v", err)
	}
	h := hub(t, dispatch.HubConfig{Listen: "127.0.0.1:0"})
	taken := strings.TrimPrefix(h.URL(), "nats://")
	if _, err := dispatch.StartHub(dispatch.HubConfig{Listen: taken, Store: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("second hub at %s: %v", taken, err)
	}
	if _, err := dispatch.NewController(t.Context(), dispatch.Address{URL: "nats://127.0.0.1:1"}, dispatch.DefaultController("r", clock())); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("no hub: %v", err)
	}
}

// Jobs that are no jobs end with a reason and stop nothing.
func TestBadJobs(t *testing.T) {
	a := dispatch.Address{Hub: hub(t, dispatch.HubConfig{})}
	x := controller(t, a, nil)
	local := newSum(10)
	r := remote(t, x, local)
	work(t, a, "w", newSum(10), 1)
	await(t, x, 1)
	nc, err := dispatch.Connect(a)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for _, data := range []string{"", "no head", "{}\n", "{\"ops\":3}\nxyz", "{\"ops\":99999999}\n\x05abcde", strings.Repeat("x", 5000)} {
		if err := nc.PublishMsg(&nats.Msg{Subject: "jobs.roofline.run", Data: []byte(data)}); err != nil {
			t.Fatal(err)
		}
	}
	evaluateAll(t, r, local, 10, 2)
	// A placement of another graph is answered with the reason, and then by the
	// controller, which panics as its evaluator does.
	func() {
		defer func() { recover() }()
		r.Evaluate(plan.Decision{Device: make([]uint8, 11)})
	}()
	if !strings.Contains(r.Failure(), "placement of 11 ops") {
		t.Errorf("failure %q", r.Failure())
	}
	if s := x.Stats(); s.Remote != 10 {
		t.Errorf("%+v", s)
	}
}

func BenchmarkJob(b *testing.B) {
	a := dispatch.Address{Hub: hub(b, dispatch.HubConfig{Listen: "127.0.0.1:0"})}
	x := controller(b, a, nil)
	local := newSum(82000)
	work(b, dispatch.Address{URL: a.Hub.URL()}, "w", newSum(local.ops), 2)
	await(b, x, 1)
	r := remote(b, x, local)
	d, p := placement(82000, 3), ranks(82000, 1)
	e := newSum(82000)
	own := time.Now()
	for range 100 {
		e.Evaluate(plan.Decision{Device: d, Priority: p})
	}
	each := time.Since(own) / 100
	for b.Loop() {
		r.Evaluate(plan.Decision{Device: d, Priority: p})
	}
	b.ReportMetric(float64(b.Elapsed()/time.Duration(b.N)-each)/1e6, "overhead-ms/job")
}
