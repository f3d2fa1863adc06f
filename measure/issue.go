package measure

import (
	"errors"
	"fmt"

	"placer/hw/gpu"
	"placer/sim"
)

func isOutOfMemory(err error) bool { return errors.Is(err, gpu.OutOfMemory) }

// observer is told what the host issues, before and after it. Nil observes
// nothing.
type observer interface {
	before(c *command, stream gpu.Stream) error
	after(c *command, stream gpu.Stream) error
}

// issue hands one step to the GPUs, in the order of the program.
func (x *contexts) issue(o observer) error {
	for i := range x.c.commands {
		c := &x.c.commands[i]
		var s gpu.Stream
		if c.stream != none {
			if err := x.on(int(c.stream)); err != nil {
				return err
			}
			s = x.streams[c.stream]
		}
		observed := o != nil && (c.do == runOp || c.do == send)
		if observed {
			if err := o.before(c, s); err != nil {
				return err
			}
		}
		if err := x.one(c, s); err != nil {
			return x.explain(c, err)
		}
		if observed {
			if err := o.after(c, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *contexts) one(c *command, s gpu.Stream) error {
	switch c.do {
	case record:
		return x.d.Record(x.events[c.event], s)
	case wait:
		return x.d.Wait(s, x.events[c.event])
	case hostFor:
		return x.d.SyncEvent(x.events[c.event])
	case send:
		return x.send(&x.c.messages[c.subject], s)
	}
	k := &x.c.kernels[c.subject]
	for range k.times {
		for i := range k.work {
			if s == 0 {
				x.runOnHost(&k.work[i])
			} else if err := x.run(&k.work[i], k.dev, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// explain names what failed.
func (x *contexts) explain(c *command, err error) error {
	switch c.do {
	case runOp:
		k := &x.c.kernels[c.subject]
		o := x.p.Graph.Op(k.ops[0])
		what := fmt.Sprintf("op %d (%s, %s)", k.ops[0], o.Name, o.Kind)
		if len(k.ops) > 1 {
			what = fmt.Sprintf("kernel of %s and %d more", what, len(k.ops)-1)
		}
		if w := &k.work[0]; w.kind == product {
			return fmt.Errorf("%s: product of %v [%d,%d,%d,%d]: %w", what, w.product.Type, w.product.Batch, w.product.M, w.product.N, w.product.K, err)
		}
		return fmt.Errorf("%s: %w", what, err)
	case send:
		m := &x.c.messages[c.subject]
		return fmt.Errorf("output of op %d (%s) to %s: %w", m.op, x.p.Graph.Op(m.op).Name, x.p.Machine.Devices[m.to].Name, err)
	}
	return err
}

// run launches w on device dev.
func (x *contexts) run(w *work, dev int, s gpu.Stream) error {
	switch w.kind {
	case product:
		p := &x.product
		*p = w.product
		a, b, c := p.Bytes()
		p.A, p.B, p.C = x.input(w, dev, 0, a), x.input(w, dev, 1, b), x.output(w, dev, c)
		for range w.parts {
			if err := x.b.Multiply(x.handle[dev], p); err != nil {
				return err
			}
		}
	case stream:
		if w.in+w.out == 0 {
			return x.at[dev].k.Nop(x.d, s)
		}
		return x.at[dev].k.Stream(x.d, s, x.input(w, dev, 0, w.in), w.in, x.output(w, dev, w.out), w.out, w.fma)
	}
	return nil
}

// input returns where w finds its k-th input on dev: where the tensor is, or
// nearer to the slab's start where bytes would reach beyond its end.
func (x *contexts) input(w *work, dev, k int, bytes uint64) gpu.Ptr {
	return x.within(dev, x.l.tensor[place{w.from[k], dev}], bytes)
}

// output returns where w writes.
func (x *contexts) output(w *work, dev int, bytes uint64) gpu.Ptr {
	at := x.l.resident[w.resident]
	if w.to != sim.NoTensor {
		at = x.l.tensor[place{w.to, dev}]
	}
	return x.within(dev, at, bytes)
}

func (x *contexts) within(dev int, at, bytes uint64) gpu.Ptr {
	if room := x.slabBytes(dev); at+bytes > room {
		at = (room - bytes) / align * align
	}
	return x.slab[dev] + gpu.Ptr(at)
}

// send puts m on stream s.
func (x *contexts) send(m *message, s gpu.Stream) error {
	from, to, bytes := x.at[m.from], x.at[m.to], uint64(m.bytes)
	if from == to && from != nil {
		return x.hold(m, s)
	}
	if m.tensor == sim.NoTensor || bytes == 0 {
		return nil // the event behind it is all there is
	}
	switch {
	case from == nil:
		return x.d.HtoD(x.within(m.to, x.l.tensor[place{m.tensor, m.to}], bytes), x.pinned[:bytes], s)
	case to == nil:
		return x.d.DtoH(x.pinned[:bytes], x.within(m.from, x.l.tensor[place{m.tensor, m.from}], bytes), s)
	}
	return x.d.Peer(x.within(m.to, x.l.tensor[place{m.tensor, m.to}], bytes), to.context, x.within(m.from, x.l.tensor[place{m.tensor, m.from}], bytes), from.context, bytes, s)
}

// hold copies m within a GPU, held back until the link of the machine would have
// carried it.
func (x *contexts) hold(m *message, s gpu.Stream) error {
	k := x.at[m.from]
	bytes := float64(m.bytes)
	want := float64(x.p.Machine.TransferSeconds(m.from, m.to, m.bytes))
	if m.bytes > 0 {
		want -= k.copies.a + k.copies.b*bytes
	} else {
		want -= k.copies.word
	}
	if want > 0 {
		if err := k.k.Spin(x.d, s, uint64(want*1e9)); err != nil {
			return err
		}
	}
	if m.bytes == 0 || m.tensor == sim.NoTensor {
		return nil
	}
	return x.d.DtoD(x.within(m.to, x.l.tensor[place{m.tensor, m.to}], uint64(m.bytes)), x.within(m.from, x.l.tensor[place{m.tensor, m.from}], uint64(m.bytes)), uint64(m.bytes), s)
}
