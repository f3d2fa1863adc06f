//go:build !light

package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"placer/graph"
	"placer/hw"
	"placer/internal/dispatch"
	"placer/internal/words"
	"placer/placer/problem"
	"placer/plan"
)

// workerPool is the workers of a search.
type workerPool struct {
	controller *dispatch.Controller
	remote     *dispatch.Remote
	hub        *dispatch.Hub // nil for one that runs elsewhere
	store      string        // folder of the hub
	told       float64
	failure    string        // the last one that was told
	kind       dispatch.Kind // of the workers that the search needs
	host       string        // identity of those that measure
}

// checkAddress reports a URL that leads to no hub, whatever is started there.
func (f *hubSettings) checkAddress() error {
	if !strings.Contains(f.Address, "://") {
		return nil // to listen at
	}
	if err := (dispatch.Address{URL: f.Address}).Check(); err != nil {
		return usagef("hub.address: %w", err)
	}
	return nil
}

// openHub starts or finds the hub, offers it the task of s, waits for workers,
// and makes them the task's rollouts. Nil where the settings name none.
func (c *console) openHub(ctx context.Context, f *hubSettings, s *searchRun) (*workerPool, error) {
	if f.Address == "" {
		return nil, nil
	}
	x := &workerPool{kind: dispatch.Roofline}
	var settings string
	await := f.Await
	if s.config.measures() { // whose workers are not to be done without
		x.kind, settings, await = dispatch.Hardware(s.config.MachineHash), s.config.Measuring.String(), max(1, f.Await)
	} else {
		settings = simulating{s.config.Contention, scoresOf(s.task.Evaluator.Clone(), s.task.Machine.NumDevices())}.String()
	}
	if err := x.connect(ctx, c, f); err != nil {
		x.close()
		return nil, err
	}
	if err := x.offer(ctx, c, s, settings, await); err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

// connect starts the hub, or finds the one that runs elsewhere, as f says.
func (x *workerPool) connect(ctx context.Context, c *console, f *hubSettings) (err error) {
	a := dispatch.Address{URL: f.Address, Keys: f.Keys}
	name := make([]byte, 8)
	if _, err := rand.Read(name); err != nil {
		return err
	}
	config := dispatch.DefaultController(hex.EncodeToString(name), c.clock)
	if strings.Contains(f.Address, "://") {
		config.Disk = true
	} else {
		if x.store, err = os.MkdirTemp("", "placer-hub-"); err != nil {
			return fmt.Errorf("a folder for the hub's jobs in %s (TMPDIR): %w", os.TempDir(), err)
		}
		if x.hub, err = dispatch.StartHub(dispatch.HubConfig{Listen: f.Address, Keys: f.Keys, Now: c.now(), Store: x.store}); err != nil {
			return err
		}
		a = dispatch.Address{Hub: x.hub}
		c.say("hub at %s", x.hub.URL())
	}
	x.controller, err = dispatch.NewController(ctx, a, config)
	return err
}

// offer offers workers the task of s, under these settings, and waits for so many of them.
// Workers that measure are of one host: the first that come say which.
func (x *workerPool) offer(ctx context.Context, c *console, s *searchRun, settings string, await int) (err error) {
	t := s.task
	var g, m bytes.Buffer
	if err := t.Graph.Write(&g); err != nil {
		return err
	}
	if err := t.Machine.Write(&m); err != nil {
		return err
	}
	if s.config.measures() {
		c.say("waiting for %s on machine %s (%.12s)", words.Count(await, "worker that measures", "workers that measure"), t.Machine.Name, s.config.MachineHash)
		if err := x.controller.Await(ctx, x.kind, await); err != nil {
			return err
		}
		if x.host, err = x.identity(); err != nil {
			return err
		}
		x.kind = measuringKind(s.config.MachineHash, x.host) // those of another host never see its jobs
	}
	if x.remote, err = x.controller.Remote(dispatch.Problem{Kind: x.kind, Graph: g.Bytes(), Machine: m.Bytes(), Settings: settings, Priority: t.Priority}, t.Evaluator.Clone()); err != nil {
		return err
	}
	if s.config.measures() {
		return nil
	}
	if await > 0 {
		c.say("waiting for %s", words.Count(await, "worker", "workers"))
		if err := x.controller.Await(ctx, x.kind, await); err != nil {
			return err
		}
	}
	s.host.Rollouts = x.remote.Rollouts
	return nil
}

// close leaves the hub, or ends it. It may be called on nil.
func (x *workerPool) close() {
	if x == nil {
		return
	}
	if x.controller != nil {
		x.controller.Close()
	}
	if x.hub != nil {
		x.hub.Close()
	}
	if x.store != "" {
		os.RemoveAll(x.store)
	}
}

// measuringKind is the queue of workers that measure on a machine and agree in
// what else measurements depend on.
func measuringKind(machine, host string) dispatch.Kind {
	h := sha256.Sum256([]byte(machine + "\n" + host))
	return dispatch.Hardware(hex.EncodeToString(h[:]))
}

// identity returns what the workers' measurements depend on, which must be the
// same for all that are there.
func (x *workerPool) identity() (string, error) {
	var first dispatch.WorkerStatus
	for i, w := range x.controller.Workers(x.kind) {
		switch {
		case i == 0:
			first = w
		case w.Identity != first.Identity:
			return "", fmt.Errorf("workers %s and %s measure on different GPUs or libraries: %s and %s", first.Name, w.Name, first.Identity, w.Identity)
		}
	}
	return first.Identity, nil
}

// tell shows now and then what each worker has done.
func (x *workerPool) tell(show *progress, seconds float64) {
	if x == nil || seconds-x.told < show.every {
		return
	}
	x.told = seconds
	var parts []string
	for _, w := range x.controller.Workers(x.kind) {
		parts = append(parts, fmt.Sprintf("%s %d", w.Name, w.Done))
	}
	if len(parts) == 0 {
		parts = []string{"none"}
	}
	if why := x.remote.Failure(); why != x.failure {
		x.failure = why
		show.line("placer: a job failed: %s", why)
	}
	show.line("%7.1f s  workers      %s", seconds, strings.Join(parts, ", "))
}

// sum says who evaluated what the policies sampled.
func (x *workerPool) sum(c *console) {
	if x == nil {
		return
	}
	s := x.controller.Stats()
	line := fmt.Sprintf("samples evaluated: %d by workers, %d here", s.Remote, s.Local)
	if x.kind.IsHardware() {
		line = fmt.Sprintf("measured by workers: %d", s.Remote)
	}
	if s.Unheard > 0 {
		line += fmt.Sprintf("; %s not counted", words.Count(s.Unheard, "answer came twice or too late and was", "answers came twice or too late and were"))
	}
	c.say("%s", line)
	if why := x.remote.Failure(); why != "" {
		c.say("the last job that failed: %s", why)
	}
}

// rooflineEvaluator makes the simulator of a problem, as a worker needs it.
func rooflineEvaluator(p dispatch.Problem) (plan.Evaluator, error) {
	g, err := graph.Read(p.Graph, "graph")
	if err != nil {
		return nil, err
	}
	m, err := hw.Read(bytes.NewReader(p.Machine))
	if err != nil {
		return nil, err
	}
	how, err := parseSimulating(p.Settings)
	if err != nil {
		return nil, err
	}
	s, _, err := problem.Simulator(problem.Source{Graph: g}, m, problem.Options{Scheduler: problem.FIFO, Contention: how.Contention})
	if err != nil {
		return nil, err
	}
	if got := scoresOf(s, m.NumDevices()); got != how.Scores {
		return nil, fmt.Errorf("this worker simulates other steps (%s) than the search (%s): is it another version of placer, or another kind of processor?", got, how.Scores)
	}
	return s, nil
}
