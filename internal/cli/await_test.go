package cli

import (
	"context"
	"errors"
	"testing"

	"placer/internal/parallel"
)

// TestAwait: what hears no context is left behind when the command is to stop, and its result,
// error or panic is that of the command elsewhere.
func TestAwait(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	c := &console{stopped: ctx.Done()}
	if n, err := await(c, func() (int, error) { return 3, nil }); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	want := errors.New("no")
	if _, err := await(c, func() (int, error) { return 0, want }); !errors.Is(err, want) {
		t.Errorf("error %v", err)
	}
	func() {
		defer func() {
			if p, ok := recover().(*parallel.Panic); !ok || p.Value != "defect" {
				t.Errorf("panic %v", p)
			}
		}()
		_, _ = await(c, func() (int, error) { panic("defect") })
	}()
	begun, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	go func() {
		<-begun
		stop()
	}()
	if _, err := await(c, func() (int, error) { close(begun); <-release; return 1, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: error %v", err)
	}
}
