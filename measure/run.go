package measure

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"placer/hw/gpu"
	"placer/sim"
	"placer/units"
)

// Run measures p. costs are the predicted times of ops. The error is an
// *OutOfMemory where the plan does not fit.
func Run(ctx context.Context, cfg Config, p *Problem, costs sim.CostModel, d gpu.Driver, b gpu.BLAS) (r *Result, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("measure: %w", err)
	}
	n, err := d.Count()
	if err != nil {
		return nil, err
	}
	if err := p.check(&cfg, n); err != nil {
		return nil, fmt.Errorf("measure: %w", err)
	}
	devices := p.Machine.NumDevices()
	x := &contexts{d: d, b: b, p: p, cfg: &cfg, c: compile(p), gpus: map[int]*card{}, at: make([]*card, devices), slab: make([]gpu.Ptr, devices),
		handle: make([]gpu.Handle, devices), sms: make([]int, devices), host: &hostMemory{workers: runtime.GOMAXPROCS(0)}}
	x.l = planMemory(p.Graph, p.Machine, p.Plan.Device, x.c, p.Predicted.Trace)
	x.streams, x.events = make([]gpu.Stream, len(x.c.streams)), make([]gpu.Event, x.c.events)
	err = gpu.Locked(func() error {
		defer x.close()
		if err := x.open(); err != nil {
			return err
		}
		r, err = x.measure(ctx, costs)
		return err
	})
	return r, err
}

// step times one step that body issues. The device waits for hold before it
// starts.
func (x *contexts) step(f *frame, hold units.Seconds, body func() error) (device, host units.Seconds, err error) {
	s, card := x.origin()
	if err := x.use(card); err != nil {
		return 0, 0, err
	}
	if hold > 0 {
		if err := card.k.Spin(x.d, s, uint64(hold*1e9)); err != nil {
			return 0, 0, err
		}
	}
	t, err := gpu.Elapsed(x.d, f.start, f.end, s, func() error {
		from := x.cfg.Clock()
		if err := body(); err != nil {
			return err
		}
		host = units.Seconds(x.cfg.Clock() - from)
		return x.use(card)
	}, nil)
	if err != nil {
		return 0, 0, err
	}
	return units.Seconds(t), host, nil
}

// measure times steps, and traces one if that is asked for.
func (x *contexts) measure(ctx context.Context, costs sim.CostModel) (*Result, error) {
	f, err := x.newFrame()
	if err != nil {
		return nil, err
	}
	defer f.close(x)
	body, free, err := x.body(f)
	if err != nil {
		return nil, err
	}
	defer free()
	r := &Result{Mode: x.cfg.Mode, Predicted: x.p.Predicted.Makespan, SMs: x.sms}
	r.Kernels = len(x.c.kernels)
	for _, n := range x.l.slab {
		r.Slab = append(r.Slab, units.Bytes(n))
	}
	if err := x.repeat(ctx, f, body, r); err != nil {
		return nil, err
	}
	r.Notes = append(r.Notes, x.doubts(r)...)
	if x.cfg.Trace {
		if err := x.trace(f, r, costs); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// body returns what issues one step: call by call, or the launch of a graph that was
// captured once and that free gives up.
func (x *contexts) body(f *frame) (body func() error, free func(), err error) {
	eager := func() error {
		if err := f.fork(x); err != nil {
			return err
		}
		if err := x.issue(nil); err != nil {
			return err
		}
		return f.join(x)
	}
	if x.cfg.Mode != Captured {
		return eager, func() {}, nil
	}
	// One step first: whatever a first call sets up must not be captured.
	if _, _, err := x.step(f, 0, eager); err != nil {
		return nil, nil, err
	}
	s, card := x.origin()
	if err := x.use(card); err != nil {
		return nil, nil, err
	}
	exec, free, err := gpu.Capture(x.d, s, func() error { return errors.Join(eager(), x.use(card)) })
	if err != nil {
		return nil, nil, err
	}
	return func() error { return x.d.LaunchExec(exec, s) }, free, nil
}

// repeat times the steps that body issues into r, behind one that warms up.
func (x *contexts) repeat(ctx context.Context, f *frame, body func() error, r *Result) error {
	_, card := x.origin()
	uuid, _ := gpu.Identity(x.d, card.ordinal) // without it there are no states
	var issued []units.Seconds
	// While the host hands over a graph of many thousand nodes the device is held
	// back, so that the time is the device's alone.
	hold := units.Seconds(0)
	quickest := units.Seconds(0.5)
	for k := range x.cfg.Repeats + 1 {
		if err := ctx.Err(); err != nil {
			return err
		}
		t, host, err := x.step(f, hold, body)
		if err != nil {
			return err
		}
		if x.cfg.Mode == Captured {
			quickest = min(quickest, host)
			hold = 2*quickest + launching
		}
		if k == 0 {
			continue // warms up
		}
		r.Steps = append(r.Steps, t)
		issued = append(issued, host)
		if x.cfg.State != nil && (k == 1 || k == x.cfg.Repeats) { // which takes milliseconds
			if s, err := x.cfg.State(uuid); err == nil {
				r.States = append(r.States, s)
			}
		}
	}
	r.Makespan, r.Issue = median(r.Steps), median(issued)
	return nil
}

// doubts says why the times of r may not be those of the devices alone.
func (x *contexts) doubts(r *Result) (notes []string) {
	if x.cfg.Mode == Eager && r.Issue > r.Makespan*8/10 {
		notes = append(notes, fmt.Sprintf("the host needs %v to issue a step: measure as a graph for the device's own time", r.Issue))
	}
	for dev, at := range x.at {
		if at == nil && slices.ContainsFunc(x.c.kernels, func(k piece) bool { return k.dev == dev && k.launches() }) {
			notes = append(notes, "ops on "+x.p.Machine.Devices[dev].Name+" run on the thread that issues the others: their times are approximate")
		}
	}
	return notes
}

// launching is what a graph's launch takes at the most beside its nodes.
const launching = 200e-6

func median(x []units.Seconds) units.Seconds {
	y := slices.Clone(x)
	slices.Sort(y)
	return y[len(y)/2]
}
