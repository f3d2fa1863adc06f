package measure

import (
	"fmt"

	"placer/graph/fuse"
	"placer/hw/gpu"
	"placer/hw/gpu/kernel"
	"placer/units"
)

// contexts are the GPUs prepared for a program: contexts, streams, events, memory.
type contexts struct {
	d       gpu.Driver
	b       gpu.BLAS
	p       *Problem
	cfg     *Config
	c       *program
	l       *layout
	gpus    map[int]*card
	at      []*card // [D] nil for the host
	slab    []gpu.Ptr
	handle  []gpu.Handle // [D]
	streams []gpu.Stream
	events  []gpu.Event
	pinned  []byte
	host    *hostMemory
	sms     []int // [D] multiprocessors of a device's own; 0 for all
	current gpu.Context
	product gpu.Product // so that a call allocates nothing
}

// card is one GPU.
type card struct {
	ordinal int
	context gpu.Context
	k       *kernel.Set
	copies  line // of messages within it
	parts   []gpu.Part
	next    int
}

const workspace = 32 << 20

// open prepares everything. What it has made goes with close, also on an error.
func (x *contexts) open() error {
	if err := x.plan(); err != nil {
		return err
	}
	for dev, ordinal := range x.p.GPU {
		if ordinal == Host {
			continue
		}
		k, ok := x.gpus[ordinal]
		if !ok {
			k = &card{ordinal: ordinal}
			x.gpus[ordinal] = k
			if err := x.openCard(k); err != nil {
				return fmt.Errorf("GPU %d: %w", ordinal, err)
			}
		}
		x.at[dev] = k
	}
	if err := x.peers(); err != nil {
		return err
	}
	if err := x.partition(); err != nil {
		return err
	}
	if err := x.memory(); err != nil {
		return err
	}
	if err := x.openStreams(); err != nil {
		return err
	}
	for _, k := range x.gpus {
		if err := x.timeCopies(k); err != nil {
			return fmt.Errorf("GPU %d: copies: %w", k.ordinal, err)
		}
	}
	return x.synchronise()
}

// plan finds the work of every kernel and the sizes of the slabs: what the layout
// needs, and no less than any launch on the device touches.
func (x *contexts) plan() error {
	g := x.p.Graph
	role := fuse.Roles(g)
	for i := range x.c.kernels {
		k := &x.c.kernels[i]
		if len(k.ops) == 1 {
			w := workOf(g, k.ops[0], x.cfg.tf32)
			var err error
			if k.work, k.times, err = workOfIterations(g, k.ops[0], w); err != nil {
				return err
			}
			k.class = w.class.String()
		} else {
			k.work, k.class = workOfKernel(g, role, k.ops, x.cfg.tf32)
			k.times = 1
		}
		for _, w := range k.work {
			x.l.slab[k.dev] = max(x.l.slab[k.dev], round(w.operands))
		}
	}
	for dev := range x.l.slab {
		have := x.p.Machine.Devices[dev].Memory
		if need := units.Bytes(x.l.slab[dev]); need > have {
			return &OutOfMemory{x.p.Machine.Devices[dev].Name, need, have}
		}
	}
	return nil
}

func (x *contexts) openCard(k *card) (err error) {
	if k.context, err = x.d.Retain(k.ordinal); err != nil {
		return err
	}
	if err = x.use(k); err != nil {
		return err
	}
	if x.cfg.Warm != nil {
		k.k, err = x.cfg.Warm.kernels(k.ordinal)
	} else {
		k.k, err = kernel.Load(x.d, k.ordinal)
	}
	return err
}

// use makes k's context current.
func (x *contexts) use(k *card) error {
	if x.current == k.context {
		return nil
	}
	x.current = k.context
	return x.d.SetCurrent(k.context)
}

// on makes the context of stream i current.
func (x *contexts) on(i int) error { return x.use(x.at[x.c.streams[i].dev]) }

// eachStream calls f for every stream from the first on, in its context.
func (x *contexts) eachStream(first int, f func(i int, s gpu.Stream) error) error {
	for i := first; i < len(x.streams); i++ {
		if err := x.on(i); err != nil {
			return err
		}
		if err := f(i, x.streams[i]); err != nil {
			return err
		}
	}
	return nil
}

// eachDevice calls f for every device that stands on a GPU, in its context.
func (x *contexts) eachDevice(f func(dev int, k *card) error) error {
	for dev, k := range x.at {
		if k == nil {
			continue
		}
		if err := x.use(k); err != nil {
			return err
		}
		if err := f(dev, k); err != nil {
			return err
		}
	}
	return nil
}

// peers opens the direct ways between GPUs where there are any.
func (x *contexts) peers() error {
	for _, a := range x.gpus {
		for _, b := range x.gpus {
			if a == b {
				continue
			}
			can, err := x.d.CanPeer(a.ordinal, b.ordinal)
			if err != nil {
				return err
			}
			if can {
				if err := x.use(a); err != nil {
					return err
				}
				if err := x.d.EnablePeer(b.context); err != nil {
					return fmt.Errorf("GPU %d to GPU %d: %w", a.ordinal, b.ordinal, err)
				}
			}
		}
	}
	return nil
}

// partition divides the multiprocessors of GPUs that several devices stand on.
func (x *contexts) partition() error {
	if !x.cfg.Partition {
		return nil
	}
	p, ok := x.d.(gpu.Partitioner)
	if !ok {
		return fmt.Errorf("this driver cannot divide multiprocessors")
	}
	for _, k := range x.gpus {
		n := 0
		for _, at := range x.at {
			if at == k {
				n++
			}
		}
		if n < 2 {
			continue
		}
		if err := x.use(k); err != nil {
			return err
		}
		parts, err := p.Partition(k.ordinal, n)
		if err != nil {
			return fmt.Errorf("GPU %d: %w", k.ordinal, err)
		}
		k.parts = parts
		i := 0
		for dev, at := range x.at {
			if at == k {
				x.sms[dev] = parts[i].SMs
				i++
			}
		}
	}
	return nil
}

// memory allocates the slabs. That they do not fit is known before from what is
// free, and by the allocation failing all the same.
func (x *contexts) memory() error {
	for _, k := range x.gpus {
		if err := x.use(k); err != nil {
			return err
		}
		free, _, err := x.d.MemInfo()
		if err != nil {
			return err
		}
		need, name := uint64(x.cfg.reserve), ""
		for dev, at := range x.at {
			if at == k {
				need += x.slabBytes(dev) + workspace
				name += x.p.Machine.Devices[dev].Name + " "
			}
		}
		if need > free {
			return &OutOfMemory{fmt.Sprintf("GPU %d with %s", k.ordinal, name), units.Bytes(need), units.Bytes(free)}
		}
	}
	err := x.eachDevice(func(dev int, _ *card) error {
		n := x.slabBytes(dev) + workspace
		p, err := x.d.Alloc(n)
		if isOutOfMemory(err) {
			return &OutOfMemory{x.p.Machine.Devices[dev].Name, units.Bytes(n), 0}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", x.p.Machine.Devices[dev].Name, err)
		}
		x.slab[dev] = p
		if x.handle[dev], err = x.b.NewHandle(); err != nil {
			return fmt.Errorf("%s: cuBLAS: %w", x.p.Machine.Devices[dev].Name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	var largest units.Bytes
	for i := range x.c.messages {
		if m := &x.c.messages[i]; x.at[m.from] == nil || x.at[m.to] == nil {
			largest = max(largest, m.bytes)
		}
	}
	if largest > 0 && len(x.gpus) > 0 {
		if x.pinned, err = x.d.HostAlloc(int(largest)); err != nil {
			return fmt.Errorf("pinned memory of %v: %w", largest, err)
		}
	}
	return nil
}

// slabBytes is at least enough to time copies in.
func (x *contexts) slabBytes(dev int) uint64 { return max(round(x.l.slab[dev]), 32<<20) }

func (x *contexts) openStreams() error {
	err := x.eachStream(0, func(i int, _ gpu.Stream) (err error) {
		k := x.at[x.c.streams[i].dev]
		switch {
		case x.c.streams[i].copy: // copies go first: others wait for them
			x.streams[i], err = x.d.NewStream(-1)
		case k.next < len(k.parts):
			x.streams[i], err = k.parts[k.next].NewStream(0)
			k.next++
		default:
			x.streams[i], err = x.d.NewStream(0)
		}
		if err != nil {
			return fmt.Errorf("stream: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = x.eachDevice(func(dev int, k *card) error {
		s := x.streams[x.c.compute[dev]]
		if err := x.b.SetStream(x.handle[dev], s); err != nil {
			return fmt.Errorf("cuBLAS: %w", err)
		}
		if l, ok := x.b.(gpu.SMLimiter); ok && x.sms[dev] > 0 {
			if err := l.LimitSMs(x.handle[dev], x.sms[dev]); err != nil {
				return fmt.Errorf("cuBLAS: %w", err)
			}
		}
		if err := x.b.SetWorkspace(x.handle[dev], x.slab[dev]+gpu.Ptr(x.slabBytes(dev)), workspace); err != nil {
			return fmt.Errorf("cuBLAS: %w", err)
		}
		return k.k.Fill(x.d, s, x.slab[dev], x.slabBytes(dev), x.fillType(dev), uint32(dev))
	})
	if err != nil {
		return err
	}
	// Events belong to the context in which they are made, and are recorded there.
	for _, c := range x.c.commands {
		if c.do != record {
			continue
		}
		if err := x.on(int(c.stream)); err != nil {
			return err
		}
		if x.events[c.event], err = x.d.NewEvent(false); err != nil {
			return fmt.Errorf("event: %w", err)
		}
	}
	return nil
}

// fillType is the type of most products of a device, whose values must be
// numbers.
func (x *contexts) fillType(dev int) gpu.DType {
	var count [gpu.NumDTypes]int
	for i := range x.c.kernels {
		for _, w := range x.c.kernels[i].work {
			if w.kind == product && x.c.kernels[i].dev == dev {
				count[w.product.Type]++
			}
		}
	}
	best := gpu.F32
	for t, n := range count {
		if n > count[best] {
			best = gpu.DType(t)
		}
	}
	return best
}

// synchronise waits for everything that is under way.
func (x *contexts) synchronise() error {
	return x.eachStream(0, func(_ int, s gpu.Stream) error { return x.d.SyncStream(s) })
}

// close gives back what open took. The first thing that went wrong has been told
// by then, and a context that it has killed fails here too.
func (x *contexts) close() {
	for dev, k := range x.at {
		if k == nil {
			continue
		}
		_ = x.use(k)
		if x.handle[dev] != 0 {
			x.b.DestroyHandle(x.handle[dev])
		}
		if x.slab[dev] != 0 {
			x.d.Free(x.slab[dev])
		}
	}
	for i, s := range x.streams {
		if s != 0 {
			_ = x.on(i)
			x.d.DestroyStream(s)
		}
	}
	gpu.DestroyEvents(x.d, x.events...)
	if x.pinned != nil {
		x.d.HostFree(x.pinned)
	}
	for _, k := range x.gpus {
		for _, p := range k.parts {
			_ = x.use(k)
			_ = p.Close()
		}
		if k.context != 0 {
			x.d.Release(k.ordinal)
		}
	}
}
