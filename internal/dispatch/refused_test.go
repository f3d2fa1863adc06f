package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"placer/internal/dispatch"
	"placer/plan"
)

// A hub that comes back without knowing the worker ends it: it would never be heard of
// again, and nobody would know.
func TestHubThatForgetsAWorker(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) string {
		if err := dispatch.WriteKeys(filepath.Join(dir, name), dispatch.DefaultKeys(), time.Now()); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name, "hub")
	}
	first, second := write("first"), write("second")
	for _, f := range []string{"ca.pem", "server.pem", "server.key"} { // the hub is the same, its users are others
		data, err := os.ReadFile(filepath.Join(first, f))
		if err == nil {
			err = os.WriteFile(filepath.Join(second, f), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	h := hub(t, dispatch.HubConfig{Listen: "127.0.0.1:0", Keys: first})
	url := h.URL()
	x := controller(t, dispatch.Address{Hub: h}, nil)
	var lock sync.Mutex
	var said []string
	ended := make(chan error, 1)
	go func() {
		ended <- dispatch.Work(t.Context(), dispatch.Address{URL: url, Keys: filepath.Join(dir, "first", "worker-1")},
			dispatch.WorkerConfig{Name: "w", Kinds: kinds(dispatch.Roofline), Slots: 2,
				Evaluator: func(dispatch.Problem) (plan.Evaluator, error) { return newSum(3), nil },
				Log: func(format string, a ...any) {
					lock.Lock()
					defer lock.Unlock()
					said = append(said, fmt.Sprintf(format, a...))
				}})
	}()
	await(t, x, 1)
	x.Close()
	h.Close()
	hub(t, dispatch.HubConfig{Listen: url[strings.LastIndex(url, "/")+1:], Keys: second})
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "does not know the key in") {
			t.Errorf("the worker ends with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the worker goes on")
	}
	lock.Lock()
	defer lock.Unlock()
	if !strings.Contains(strings.Join(said, "\n"), "the connection is lost") {
		t.Errorf("nobody was told of the loss: %q", said)
	}
}

// A worker that cannot do a problem answers sooner than one that can. It must not draw the
// jobs for that, which the search would have to do by itself.
func TestRefusalsDrawNoJobs(t *testing.T) {
	a := dispatch.Address{Hub: hub(t, dispatch.HubConfig{})}
	x := controller(t, a, nil)
	local := newSum(10)
	r := remote(t, x, local)
	ctx, cancel := context.WithCancel(t.Context())
	started(ctx, cancel, t, a, dispatch.WorkerConfig{Name: "other", Kinds: kinds(dispatch.Roofline), Slots: 1,
		Evaluator: func(dispatch.Problem) (plan.Evaluator, error) { return nil, errors.New("another version") }})
	work(t, a, "same", held(10, func(context.Context, int64) { time.Sleep(5 * time.Millisecond) }), 1)
	await(t, x, 2)
	now := clock()
	evaluateAll(t, r, local, 100, 4)
	if s, most := x.Stats(), 2+int(now()); s.Local > most || s.Remote != 100-s.Local {
		t.Errorf("%+v, want at most %d of 100 done here", s, most)
	}
	if !strings.Contains(r.Failure(), "worker other: another version") {
		t.Errorf("failure %q", r.Failure())
	}
}
