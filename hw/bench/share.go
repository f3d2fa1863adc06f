package bench

import (
	"context"
	"errors"
	"fmt"

	"placer/hw"
	"placer/hw/gpu"
	"placer/units"
)

// Share is what one of several devices finds that stand on one GPU.
type Share struct {
	Parts int `json:"parts"`
	// Own says that every part has multiprocessors of its own; Device then has what
	// was measured on those of the first part while the others rested.
	Own bool `json:"own"`
	device
	// Branch is a node within a graph of as many chains as there are parts, which
	// run side by side.
	Branch stat `json:"branch"`
	// Together are kernels that read and write, one on each part at a time: the
	// bytes are those of one part.
	Together []point `json:"together,omitempty"`
	Fits     []fit   `json:"calibration,omitempty"`
}

// RunShare measures what a part of GPU dev does that k devices stand on: the cost
// of a node in a graph of k chains and, where own gives the parts multiprocessors
// of their own, launches, streams and the products of cfg, whose constants it
// fits.
func RunShare(ctx context.Context, cfg Config, d gpu.Driver, b gpu.BLAS, dev, k int, own bool) (*Share, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("hardware benchmark: %w", err)
	}
	s := &Share{Parts: k, Own: own}
	err := gpu.Locked(func() error {
		l, err := open(ctx, &cfg, d, b, dev)
		if err != nil {
			return err
		}
		defer l.close()
		streams, done, err := l.divide(dev, k, own)
		defer done()
		if err != nil {
			return err
		}
		if s.Branch, err = l.branches(streams, 1000); err != nil {
			return fmt.Errorf("%d chains: %w", k, err)
		}
		if own {
			if err := l.onPart(streams); err != nil {
				return err
			}
			if s.Together, err = l.together(streams); err != nil {
				return fmt.Errorf("%d streams: %w", k, err)
			}
		}
		s.device = *l.out
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("GPU %d in %d: %w", dev, k, err)
	}
	if own {
		r := &Result{Devices: []device{s.device}}
		if err := r.Calibrate(); err != nil {
			return nil, err
		}
		s.Fits = r.Fits
	}
	return s, nil
}

// divide returns a stream for each of k parts of the device. What done gives back
// is in use until then.
func (l *lab) divide(dev, k int, own bool) (streams []gpu.Stream, done func(), err error) {
	var parts []gpu.Part
	first := l.stream
	done = func() {
		l.stream = first
		for _, s := range streams {
			l.d.DestroyStream(s)
		}
		for _, p := range parts {
			_ = p.Close()
		}
	}
	if own {
		p, ok := l.d.(gpu.Partitioner)
		if !ok {
			return nil, done, errors.New("this driver cannot divide multiprocessors")
		}
		if parts, err = p.Partition(dev, k); err != nil {
			return nil, done, err
		}
		l.out.SMs = parts[0].SMs
	}
	for i := range k {
		make := l.d.NewStream
		if own {
			make = parts[i].NewStream
		}
		s, err := make(0)
		if err != nil {
			return streams, done, fmt.Errorf("stream: %w", err)
		}
		streams = append(streams, s)
	}
	return streams, done, nil
}

// branches returns the time of a node in a graph with a chain of inner nodes for
// each stream.
func (l *lab) branches(streams []gpu.Stream, inner int) (s stat, err error) {
	n := inner * len(streams)
	s, err = l.forked(streams, n, func() error {
		return times(n, func(i int) error { return l.k.Nop(l.d, streams[i%len(streams)]) })
	})
	return s.over(inner), err
}

// together times kernels that read and write as much, one for each stream at the
// same time, for a few sizes.
func (l *lab) together(streams []gpu.Stream) (points []point, err error) {
	const inner = 64
	for n := uint64(1 << 20); n*uint64(len(streams)) <= l.size && n <= 256<<20; n *= 4 {
		nodes := inner * len(streams)
		s, err := l.forked(streams, nodes, func() error {
			return times(nodes, func(i int) error {
				p := l.rotate(i, n)
				return l.k.Stream(l.d, streams[i%len(streams)], p, n/2, p+gpu.Ptr(n/2), n/2, 0)
			})
		})
		if err != nil {
			return points, err
		}
		points = append(points, point{units.Bytes(n), l.alone(s.over(inner))})
	}
	return points, nil
}

// forked times a graph of what f puts on the streams, so many nodes, which start
// and end together. The device is held back until the host has handed it over: of
// several chains that takes it long.
func (l *lab) forked(streams []gpu.Stream, nodes int, f func() error) (s stat, err error) {
	events := make([]gpu.Event, len(streams))
	defer func() { gpu.DestroyEvents(l.d, events...) }()
	for i := range events {
		if events[i], err = l.d.NewEvent(false); err != nil {
			return s, err
		}
	}
	origin := streams[0]
	if err := f(); err != nil { // whatever a first call sets up
		return s, err
	}
	for _, st := range streams {
		if err := l.d.SyncStream(st); err != nil {
			return s, err
		}
	}
	e, free, err := gpu.Capture(l.d, origin, func() error {
		if err := l.d.Record(events[0], origin); err != nil {
			return err
		}
		for _, st := range streams[1:] {
			if err := l.d.Wait(st, events[0]); err != nil {
				return err
			}
		}
		if err := f(); err != nil {
			return err
		}
		for i, st := range streams[1:] {
			if err := l.d.Record(events[i+1], st); err != nil {
				return err
			}
			if err := l.d.Wait(origin, events[i+1]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	defer free()
	before := l.stream
	l.stream = origin
	defer func() { l.stream = before }()
	hold := 1e6 + 5e3*uint64(nodes) // ns
	var times []units.Seconds
	for k := range l.cfg.Repeats + 1 { // the first is not timed
		if err := l.k.Spin(l.d, origin, hold); err != nil {
			return s, err
		}
		t, err := l.elapsed("", func() error { return l.d.LaunchExec(e, origin) })
		if err != nil {
			return s, err
		}
		if k > 0 {
			times = append(times, t)
		}
	}
	return summarise(times), nil
}

// onPart measures on the first of the streams what bench hw measures on a whole
// GPU, as far as steps need it.
func (l *lab) onPart(streams []gpu.Stream) error {
	whole := l.stream
	l.stream = streams[0]
	defer func() { // the handle outlives the part's stream
		l.stream = whole
		_ = l.b.SetStream(l.h, whole)
	}()
	if err := l.b.SetStream(l.h, l.stream); err != nil {
		return err
	}
	if err := l.b.SetWorkspace(l.h, l.space, workspace); err != nil {
		return err
	}
	for _, part := range []struct {
		what string
		f    func() error
	}{{"launches", l.launches}, {"streams", l.streams}, {"products", l.products}} {
		if err := part.f(); err != nil {
			return fmt.Errorf("%s: %w", part.what, err)
		}
	}
	return l.d.SyncStream(l.stream)
}

// On returns d, one of the devices that stand on the GPU, with what was measured
// of its share.
func (s *Share) On(d hw.Device) hw.Device {
	d.GraphLaunch = s.Branch.Median
	if !s.Own {
		return d
	}
	r := &Result{Devices: []device{s.device}, Fits: s.Fits}
	d.Launch = s.Launch.Median
	c := r.calibration(&r.Devices[0])
	if c == nil {
		return d
	}
	if d.Calibration != nil { // types that were not measured again
		for t, q := range d.Calibration.GEMM {
			if _, ok := c.GEMM[t]; !ok && c.GEMM != nil {
				c.GEMM[t] = q
			}
		}
	}
	d.Calibration = c
	return d
}
