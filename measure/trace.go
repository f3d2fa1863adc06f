package measure

import (
	"cmp"
	"slices"

	"placer/graph"
	"placer/hw/gpu"
	"placer/roofline"
	"placer/sim"
	"placer/units"
)

// tracer puts events around ops and messages of a step.
type tracer struct {
	x      *contexts
	from   []span       // of kernels on GPUs, [K]
	sent   []span       // of messages
	host   [][2]float64 // [K]
	begins []gpu.Event  // [D] on each device's own stream
	origin float64      // host's clock
}

type span [2]gpu.Event // start, end

func (t *tracer) events(c *command) *span {
	if c.do == send {
		return &t.sent[c.subject]
	}
	return &t.from[c.subject]
}

func (t *tracer) before(c *command, s gpu.Stream) error { return t.note(c, s, 0) }
func (t *tracer) after(c *command, s gpu.Stream) error  { return t.note(c, s, 1) }

// note keeps when c begins, at end 0, or ends.
func (t *tracer) note(c *command, s gpu.Stream, end int) (err error) {
	if s == 0 {
		t.host[c.subject][end] = t.x.cfg.Clock() - t.origin
		return nil
	}
	e := &t.events(c)[end]
	if *e, err = t.x.d.NewEvent(true); err != nil {
		return err
	}
	return t.x.d.Record(*e, s)
}

// trace runs one more step with events around everything, and fills what r has of
// ops, transfers and classes. Times of different GPUs are joined at the start of
// the step, which all of them wait for.
func (x *contexts) trace(f *frame, r *Result, costs sim.CostModel) (err error) {
	n := len(x.c.kernels)
	t := &tracer{x: x, from: make([]span, n), sent: make([]span, len(x.c.messages)), host: make([][2]float64, n), begins: make([]gpu.Event, len(x.at))}
	defer func() {
		for _, s := range append(t.from, t.sent...) {
			gpu.DestroyEvents(x.d, s[:]...)
		}
		gpu.DestroyEvents(x.d, t.begins...)
	}()
	r.Traced, _, err = x.step(f, 0, func() error {
		if err := f.fork(x); err != nil {
			return err
		}
		err := x.eachDevice(func(dev int, _ *card) (err error) {
			if t.begins[dev], err = x.d.NewEvent(true); err != nil {
				return err
			}
			return x.d.Record(t.begins[dev], x.streams[x.c.compute[dev]])
		})
		if err != nil {
			return err
		}
		t.origin = x.cfg.Clock()
		if err := x.issue(t); err != nil {
			return err
		}
		return f.join(x)
	})
	if err != nil {
		return err
	}
	if err := x.synchronise(); err != nil {
		return err
	}
	return t.collect(r, costs)
}

// between returns the time of a span of device dev within the step.
func (t *tracer) between(s span, dev int) (start, end units.Seconds, err error) {
	if err := t.x.use(t.x.at[dev]); err != nil {
		return 0, 0, err
	}
	a, err := t.x.d.ElapsedMS(t.begins[dev], s[0])
	if err != nil {
		return 0, 0, err
	}
	b, err := t.x.d.ElapsedMS(t.begins[dev], s[1])
	return units.Seconds(a) / 1000, units.Seconds(b) / 1000, err
}

func (t *tracer) collect(r *Result, costs sim.CostModel) error {
	p := t.x.p
	d := p.Machine.NumDevices()
	r.Busy, r.Idle = make([]units.Seconds, d), make([]units.Seconds, d)
	r.LinkBytes, r.LinkBusy = make([]units.Bytes, len(p.Machine.Links)), make([]units.Seconds, len(p.Machine.Links))
	r.Trace = &sim.Trace{}
	r.PeakBytes = r.Slab
	for k := range t.sent {
		m := &t.x.c.messages[k]
		owner := m.from
		if t.x.at[owner] == nil {
			owner = m.to
		}
		start, end, err := t.between(t.sent[k], owner)
		if err != nil {
			return err
		}
		r.Trace.Transfers = append(r.Trace.Transfers, sim.TransferSpan{Op: m.op, Tensor: m.tensor, From: m.from, To: m.to, Bytes: m.bytes, Ready: start, Start: start, End: end})
		for _, l := range p.Machine.Route(m.from, m.to) {
			r.LinkBytes[l] += m.bytes
			r.LinkBusy[l] += end - start
		}
	}
	kernels := t.x.c.kernels
	measured := make([]units.Seconds, len(kernels))
	for i := range kernels {
		k := &kernels[i]
		dev := k.dev
		var start, end units.Seconds
		if t.x.at[dev] == nil {
			start, end = units.Seconds(t.host[i][0]), units.Seconds(t.host[i][1])
		} else {
			var err error
			if start, end, err = t.between(t.from[i], dev); err != nil {
				return err
			}
		}
		measured[i] = end - start
		r.Busy[dev] += end - start
		r.Trace.Ops = append(r.Trace.Ops, sim.OpSpan{Op: k.ops[0], Fused: k.ops[1:], Device: dev, Ready: start, Start: start, End: end})
	}
	slices.SortFunc(r.Trace.Ops, func(a, b sim.OpSpan) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Op, b.Op))
	})
	for dev := range r.Idle {
		r.Idle[dev] = max(0, r.Traced-r.Busy[dev])
	}
	r.Classes = t.classes(measured, costs)
	return nil
}

// classes compares the kernels that launch something, by class.
func (t *tracer) classes(measured []units.Seconds, costs sim.CostModel) (out []classTime) {
	type pair struct{ predicted, measured []units.Seconds }
	by := map[string]*pair{}
	for i := range measured {
		k := &t.x.c.kernels[i]
		if !k.launches() || !(measured[i] > 0) {
			continue
		}
		x := by[k.class]
		if x == nil {
			x = &pair{}
			by[k.class] = x
		}
		predicted := k.takes
		if len(k.ops) == 1 {
			predicted = costs.OpSeconds(k.ops[0], k.dev)
		}
		x.predicted, x.measured = append(x.predicted, predicted), append(x.measured, measured[i])
	}
	for _, name := range classNames() {
		p := by[name]
		if p == nil {
			continue
		}
		x := classTime{Class: name, Ops: len(p.measured)}
		for k := range p.measured {
			x.Measured += p.measured[k]
			x.Predicted += p.predicted[k]
		}
		if len(p.measured) <= 5000 { // the rank correlation is quadratic
			x.Report = roofline.NewReport(p.predicted, p.measured)
		}
		out = append(out, x)
	}
	return out
}

// classNames lists the classes of kernels: of single ops, then of several.
func classNames() (names []string) {
	for _, prefix := range []string{"", "fused "} {
		for c := range graph.NumClasses {
			names = append(names, prefix+graph.Class(c).String())
		}
	}
	return names
}
