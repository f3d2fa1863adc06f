package measure

import (
	"errors"
	"fmt"

	"placer/gpu"
	"placer/graph"
	"placer/sim"
)

func opID(i int) graph.OpID { return graph.OpID(i) }

func isOutOfMemory(err error) bool { return errors.Is(err, gpu.OutOfMemory) }

// observer is told what the host issues, before and after it. Nil observes
// nothing.
type observer interface {
	before(c *command, stream gpu.Stream) error
	after(c *command, stream gpu.Stream) error
}

// issue hands one step to the GPUs, in the order of the program.
func (x *bed) issue(o observer) error {
	for i := range x.c.commands {
		c := &x.c.commands[i]
		var s gpu.Stream
		if c.stream != none {
			if err := x.use(x.at[x.c.streams[c.stream].dev]); err != nil {
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

func (x *bed) one(c *command, s gpu.Stream) error {
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
	if s == 0 {
		return x.runOnHost(graph.OpID(c.subject))
	}
	return x.run(graph.OpID(c.subject), s)
}

// explain names what failed.
func (x *bed) explain(c *command, err error) error {
	switch c.do {
	case runOp:
		o := x.p.Graph.Op(graph.OpID(c.subject))
		w := &x.work[c.subject]
		if w.kind == product {
			return fmt.Errorf("op %d (%s, %s): product of %v [%d,%d,%d,%d]: %w", c.subject, o.Name, o.Kind, w.product.Type, w.product.Batch, w.product.M, w.product.N, w.product.K, err)
		}
		return fmt.Errorf("op %d (%s, %s): %w", c.subject, o.Name, o.Kind, err)
	case send:
		m := &x.c.messages[c.subject]
		return fmt.Errorf("output of op %d (%s) to %s: %w", m.op, x.p.Graph.Op(m.op).Name, x.p.Machine.Devices[m.to].Name, err)
	}
	return err
}

// run launches the kernels of op i.
func (x *bed) run(i graph.OpID, s gpu.Stream) error {
	w := &x.work[i]
	dev := int(x.p.Plan.Device[i])
	switch w.kind {
	case product:
		p := &x.product
		*p = w.product
		a, b, c := p.Bytes()
		p.A, p.B, p.C = x.input(i, dev, 0, a), x.input(i, dev, 1, b), x.output(i, dev, c)
		for range w.parts {
			if err := x.b.Multiply(x.handle[dev], p); err != nil {
				return err
			}
		}
	case stream:
		if w.in+w.out == 0 {
			return x.at[dev].k.Nop(x.d, s)
		}
		return x.at[dev].k.Stream(x.d, s, x.input(i, dev, 0, w.in), w.in, x.output(i, dev, w.out), w.out, w.fma)
	}
	return nil
}

// input returns where op i finds its k-th input on dev: where the tensor is, or
// nearer to the slab's start where bytes would reach beyond its end.
func (x *bed) input(i graph.OpID, dev, k int, bytes uint64) gpu.Ptr {
	at := uint64(0)
	if in := x.p.Graph.Inputs(i); len(in) > 0 {
		at = x.l.tensor[place{in[min(k, len(in)-1)], dev}]
	}
	return x.within(dev, at, bytes)
}

// output returns where op i writes.
func (x *bed) output(i graph.OpID, dev int, bytes uint64) gpu.Ptr {
	at := x.l.resident[i] // an update writes in place
	if first, end := x.p.Graph.Outputs(i); first < end {
		at = x.l.tensor[place{first, dev}]
	}
	return x.within(dev, at, bytes)
}

func (x *bed) within(dev int, at, bytes uint64) gpu.Ptr {
	if room := x.slabBytes(dev); at+bytes > room {
		at = (room - bytes) / align * align
	}
	return x.slab[dev] + gpu.Ptr(at)
}

// send puts m on stream s.
func (x *bed) send(m *message, s gpu.Stream) error {
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
func (x *bed) hold(m *message, s gpu.Stream) error {
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
