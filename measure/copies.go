package measure

import (
	"slices"

	"placer/hw/gpu"
)

// line is the time of a message within a GPU that is held back for no time,
// seconds, from the end of the kernel that sends to the start of the one that
// receives: a + b*bytes; word is that of a message without bytes.
type line struct{ a, b, word float64 }

// timeCopies finds how long messages within a GPU take by themselves, so that they
// can be held back to a link's time: as the step issues them, on its streams, from
// one stream to another and back.
func (x *contexts) timeCopies(k *card) error {
	at := slices.IndexFunc(x.c.commands, func(c command) bool {
		return c.do == send && x.at[x.c.messages[c.subject].from] == k && x.at[x.c.messages[c.subject].to] == k
	})
	if at < 0 {
		return nil
	}
	if err := x.use(k); err != nil {
		return err
	}
	dev := x.c.messages[x.c.commands[at].subject].from
	p := &probe{x: x, k: k, ops: x.streams[x.c.compute[dev]], way: x.streams[x.c.commands[at].stream], slab: x.slab[dev]}
	defer p.close()
	if err := p.open(); err != nil {
		return err
	}
	const small, large = 4 << 10, 16 << 20
	var t [4]float64
	for i, hop := range []func() error{p.alone, func() error { return p.hop(0) }, func() error { return p.hop(small) }, func() error { return p.hop(large) }} {
		var err error
		if t[i], err = p.time(hop); err != nil {
			return err
		}
	}
	k.copies.b = max(0, t[3]-t[2]) / (large - small)
	k.copies.a = max(0, t[2]-t[0]-k.copies.b*small)
	k.copies.word = max(0, t[1]-t[0])
	return nil
}

// probe issues messages between two streams.
type probe struct {
	x        *contexts
	k        *card
	ops, way gpu.Stream
	slab     gpu.Ptr
	timing   [2]gpu.Event
	events   [2]gpu.Event
}

// open makes the events, and issues once what is captured later: a kernel's first
// launch may load it.
func (p *probe) open() (err error) {
	for i := range 2 {
		if p.timing[i], err = p.x.d.NewEvent(true); err != nil {
			return err
		}
		if p.events[i], err = p.x.d.NewEvent(false); err != nil {
			return err
		}
	}
	if err := p.hop(4 << 10); err != nil {
		return err
	}
	return p.x.d.SyncStream(p.ops)
}

func (p *probe) close() {
	gpu.DestroyEvents(p.x.d, append(p.timing[:], p.events[:]...)...)
}

// alone is a kernel without a message behind it.
func (p *probe) alone() error { return p.k.k.Nop(p.x.d, p.ops) }

// hop is a kernel and a message behind it, beside which another kernel runs: what
// comes next waits for both.
func (p *probe) hop(bytes uint64) error {
	d := p.x.d
	for _, f := range []func() error{
		func() error { return p.k.k.Nop(d, p.ops) },
		func() error { return d.Record(p.events[0], p.ops) },
		func() error { return d.Wait(p.way, p.events[0]) },
		func() error { return p.k.k.Spin(d, p.way, 0) },
		func() error {
			if bytes == 0 {
				return nil
			}
			return d.DtoD(p.slab, p.slab+gpu.Ptr(16<<20), bytes, p.way)
		},
		func() error { return d.Record(p.events[1], p.way) },
		func() error { return p.k.k.Nop(d, p.ops) },
		func() error { return d.Wait(p.ops, p.events[1]) },
	} {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

// time returns what one f takes among many: the median of a few repeats.
func (p *probe) time(f func() error) (float64, error) {
	const few, many, repeats = 4, 36, 3
	var each [repeats]float64
	for r := range repeats + 1 { // the first is not timed
		var t [2]float64
		for i, n := range []int{few, many} {
			run := func() error {
				for range n {
					if err := f(); err != nil {
						return err
					}
				}
				return nil
			}
			var err error
			if t[i], err = p.span(run); err != nil {
				return 0, err
			}
		}
		if r > 0 {
			each[r-1] = (t[1] - t[0]) / (many - few)
		}
	}
	slices.Sort(each[:])
	return each[repeats/2], nil
}

// span times what f issues, as the step is issued. The device is held back until
// the host has issued all.
func (p *probe) span(f func() error) (seconds float64, err error) {
	d := p.x.d
	if p.x.cfg.Mode == Captured {
		exec, free, err := gpu.Capture(d, p.ops, f)
		if err != nil {
			return 0, err
		}
		defer free()
		f = func() error { return d.LaunchExec(exec, p.ops) }
	}
	const issuing = 1.5e6 // ns
	if err := p.k.k.Spin(d, p.ops, issuing); err != nil {
		return 0, err
	}
	return gpu.Elapsed(d, p.timing[0], p.timing[1], p.ops, f, nil)
}
