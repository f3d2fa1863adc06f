//go:build !light

package cli

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"placer/internal/dispatch"
	"placer/plan"
)

// TestWorkerHub: an address that can never work is a usage error at once, and a hub that
// does not answer is tried so many times and no more.
func TestWorkerHub(t *testing.T) {
	if got := command(t, []string{"worker", "--hub", "foo"}); !strings.Contains(got, "want nats://HOST:PORT") || !strings.Contains(got, "exit 2") {
		t.Errorf("--hub foo:\n%s", got)
	}
	var said bytes.Buffer
	c := newConsole(nil, &said, &said)
	w := dispatch.WorkerConfig{Kinds: []dispatch.Kind{dispatch.Roofline}, Slots: 1, Evaluator: func(dispatch.Problem) (plan.Evaluator, error) { return nil, nil }}
	err := c.work(t.Context(), dispatch.Address{URL: "nats://127.0.0.1:1"}, "w", w, time.Microsecond)
	if !errors.Is(err, dispatch.ErrUnreachable) || !strings.Contains(err.Error(), "tried 600 times") {
		t.Errorf("error %v", err)
	}
	if n := strings.Count(said.String(), "trying again"); n != 1 {
		t.Errorf("%d lines of trying again:\n%s", n, said.String())
	}
}
