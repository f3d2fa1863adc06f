package gpu

import (
	"errors"
	"fmt"
)

// Enter makes the primary context of device dev current. The caller releases it.
func Enter(d Driver, dev int) (Context, error) {
	c, err := d.Retain(dev)
	if err != nil {
		return 0, err
	}
	if err := d.SetCurrent(c); err != nil {
		return 0, errors.Join(err, d.Release(dev))
	}
	return c, nil
}

// Identity returns the UUID of device dev as NVML writes it.
func Identity(d Driver, dev int) (string, error) {
	u, err := d.UUID(dev)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]), nil
}

// Capture makes a graph of what f puts on s and on streams that wait for it. free
// destroys it.
func Capture(d Driver, s Stream, f func() error) (e Exec, free func(), err error) {
	if err := d.BeginCapture(s); err != nil {
		return 0, nil, fmt.Errorf("capture: %w", err)
	}
	failed := f()
	g, err := d.EndCapture(s)
	if failed != nil && err == nil {
		d.DestroyGraph(g)
	}
	if err := errors.Join(failed, err); err != nil {
		return 0, nil, fmt.Errorf("capture: %w", err)
	}
	if e, err = d.Instantiate(g); err != nil {
		d.DestroyGraph(g)
		return 0, nil, fmt.Errorf("graph: %w", err)
	}
	return e, func() { d.DestroyExec(e); d.DestroyGraph(g) }, nil
}

// Elapsed returns the seconds that s takes for what f puts on it, between the
// events from and to. meanwhile, if not nil, runs while the device works.
func Elapsed(d Driver, from, to Event, s Stream, f func() error, meanwhile func()) (float64, error) {
	if err := d.Record(from, s); err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	if err := d.Record(to, s); err != nil {
		return 0, err
	}
	if meanwhile != nil {
		meanwhile()
	}
	if err := d.SyncEvent(to); err != nil {
		return 0, err
	}
	ms, err := d.ElapsedMS(from, to)
	return float64(ms) / 1000, err
}

// DestroyEvents destroys those of events that were made.
func DestroyEvents(d Driver, events ...Event) {
	for _, e := range events {
		if e != 0 {
			d.DestroyEvent(e)
		}
	}
}
