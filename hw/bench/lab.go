package bench

import (
	"context"
	"fmt"

	"placer/hw/gpu"
	"placer/hw/gpu/kernel"
	"placer/units"
)

// lab is one device prepared for measuring.
type lab struct {
	ctx     context.Context
	cfg     *Config
	d       gpu.Driver
	b       gpu.BLAS
	out     *device
	context gpu.Context
	stream  gpu.Stream
	k       *kernel.Set
	h       gpu.Handle
	from    gpu.Event
	to      gpu.Event
	buffer  gpu.Ptr // of random data
	size    uint64
	space   gpu.Ptr // cuBLAS's own
}

const workspace = 32 << 20

// mostNodes bounds a graph of short kernels.
const mostNodes = 256

// open makes dev current and prepares it.
func open(ctx context.Context, cfg *Config, d gpu.Driver, b gpu.BLAS, dev int) (l *lab, err error) {
	l = &lab{ctx: ctx, cfg: cfg, d: d, b: b}
	defer func() {
		if err != nil {
			l.close()
			err = fmt.Errorf("device %d: %w", dev, err)
		}
	}()
	if l.out, err = describe(d, dev); err != nil {
		return l, err
	}
	if l.context, err = gpu.Enter(d, dev); err != nil {
		return l, err
	}
	if l.k, err = kernel.Load(d, dev); err != nil {
		return l, err
	}
	if l.stream, err = d.NewStream(0); err != nil {
		return l, err
	}
	for _, e := range []*gpu.Event{&l.from, &l.to} {
		if *e, err = d.NewEvent(true); err != nil {
			return l, err
		}
	}
	if l.space, err = d.Alloc(workspace); err != nil {
		return l, err
	}
	if l.h, err = b.NewHandle(); err != nil {
		return l, fmt.Errorf("cuBLAS: %w", err)
	}
	if err = b.SetStream(l.h, l.stream); err != nil {
		return l, err
	}
	if err = b.SetWorkspace(l.h, l.space, workspace); err != nil {
		return l, err
	}
	free, total, err := d.MemInfo()
	if err != nil {
		return l, err
	}
	l.out.Context = units.Bytes(total - free)
	// Room for a product's operands beside twice the cache to rotate them in.
	l.size = min(uint64(cfg.Buffer), free/2) / 512 * 512
	if l.buffer, err = d.Alloc(l.size); err != nil {
		return l, err
	}
	return l, l.k.Fill(d, l.stream, l.buffer, l.size, gpu.F32, 1)
}

func (l *lab) close() {
	// What is left behind goes with the context.
	if l.buffer != 0 {
		l.d.Free(l.buffer)
	}
	if l.space != 0 {
		l.d.Free(l.space)
	}
	if l.h != 0 {
		l.b.DestroyHandle(l.h)
	}
	gpu.DestroyEvents(l.d, l.from, l.to)
	if l.stream != 0 {
		l.d.DestroyStream(l.stream)
	}
	if l.context != 0 {
		l.d.Release(l.out.Ordinal)
	}
}

func describe(d gpu.Driver, dev int) (out *device, err error) {
	out = &device{Ordinal: dev, Products: []Product{}}
	if out.Name, err = d.Name(dev); err != nil {
		return out, err
	}
	if out.UUID, err = gpu.Identity(d, dev); err != nil {
		return out, err
	}
	if out.PCI, err = d.PCIBusID(dev); err != nil {
		return out, err
	}
	total, err := d.TotalMem(dev)
	if err != nil {
		return out, err
	}
	out.Memory = units.Bytes(total)
	var clock, memory, l2 int
	for _, a := range []struct {
		to *int
		a  gpu.Attribute
	}{{&out.SMs, gpu.SMCount}, {&clock, gpu.ClockKHz}, {&memory, gpu.MemoryClockKHz}, {&out.BusWidth, gpu.BusWidthBits}, {&l2, gpu.L2Bytes}, {&out.Major, gpu.Major}, {&out.Minor, gpu.Minor}} {
		if *a.to, err = d.Attribute(dev, a.a); err != nil {
			return out, fmt.Errorf("attribute %d: %w", a.a, err)
		}
	}
	out.ClockMHz, out.MemoryMHz, out.L2 = clock/1000, memory/1000, units.Bytes(l2)
	return out, nil
}

// elapsed runs f between two events and returns the time between them. sample
// names what is going on for the state of the device, or is empty.
func (l *lab) elapsed(sample string, f func() error) (units.Seconds, error) {
	if err := l.ctx.Err(); err != nil {
		return 0, err
	}
	t, err := gpu.Elapsed(l.d, l.from, l.to, l.stream, f, func() {
		if sample == "" || l.cfg.State == nil {
			return
		}
		if s, err := l.cfg.State(l.out.UUID); err == nil {
			l.out.States = append(l.out.States, sampled{sample, s})
		}
	})
	return units.Seconds(t), err
}

// repeat returns the time of one of n runs, f being run with 0..n-1, where n is so
// large that all last as long as the configuration asks. The first runs are not
// timed.
func (l *lab) repeat(sample string, most int, f func(i int) error) (stat, error) {
	n := 1
	run := func() error { return times(n, f) }
	for { // the first round is the warm-up
		t, err := l.elapsed("", run)
		if err != nil {
			return stat{}, err
		}
		if t >= l.cfg.Target || n >= most {
			break
		}
		n = min(most, max(2*n, int(1.2*float64(n)*float64(l.cfg.Target/max(t, 1e-7)))))
	}
	each := make([]units.Seconds, l.cfg.Repeats)
	for k := range each {
		if k > 0 {
			sample = ""
		}
		t, err := l.elapsed(sample, run)
		if err != nil {
			return stat{}, err
		}
		each[k] = t / units.Seconds(n)
	}
	return summarise(each), nil
}

// times calls f with 0..n-1 until one call fails.
func times(n int, f func(i int) error) error {
	for i := range n {
		if err := f(i); err != nil {
			return err
		}
	}
	return nil
}

// captured is repeat with the runs in a graph, so that the host's issuing does not
// count: every launch of the graph is least runs, or more of short ones, so that
// the gap between two launches does not count either.
func (l *lab) captured(sample string, least int, f func(i int) error) (s stat, err error) {
	if err := f(0); err != nil { // whatever a first call sets up
		return s, err
	}
	one, err := l.elapsed("", func() error { return f(0) })
	if err != nil {
		return s, err
	}
	inner := max(least, int(min(mostNodes, l.cfg.Target/max(one, 1e-9))))
	e, free, err := gpu.Capture(l.d, l.stream, func() error { return times(inner, f) })
	if err != nil {
		return s, err
	}
	defer free()
	if s, err = l.repeat(sample, 64, func(int) error { return l.d.LaunchExec(e, l.stream) }); err != nil {
		return s, err
	}
	return s.over(inner), nil
}

// rotate returns the i-th of the places of size bytes in the buffer that a piece
// of work moves through, so that it does not find its data in the cache.
func (l *lab) rotate(i int, bytes uint64) gpu.Ptr {
	bytes = (bytes + 511) / 512 * 512
	room := max(1, min(l.size, max(4*uint64(l.out.L2), bytes))/bytes)
	return l.buffer + gpu.Ptr(uint64(i)%room*bytes)
}
