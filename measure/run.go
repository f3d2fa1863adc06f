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

// frame is what surrounds a step: the origin, stream 0, from which all others
// start and at which they meet, and the events that time it.
type frame struct {
	start, end gpu.Event
	forked     gpu.Event
	joined     []gpu.Event // [streams]
}

// origin returns stream 0 and the GPU that it is on.
func (x *contexts) origin() (gpu.Stream, *card) { return x.streams[0], x.at[x.c.streams[0].dev] }

func (x *contexts) newFrame() (f *frame, err error) {
	f = &frame{joined: make([]gpu.Event, len(x.streams))}
	if len(x.streams) == 0 {
		return nil, errors.New("every device is the host's: there is no GPU to measure on")
	}
	err = x.eachStream(0, func(i int, _ gpu.Stream) (err error) {
		f.joined[i], err = x.d.NewEvent(false)
		return err
	})
	if err != nil {
		return f, err
	}
	if err := x.on(0); err != nil {
		return f, err
	}
	for _, e := range []*gpu.Event{&f.start, &f.end} {
		if *e, err = x.d.NewEvent(true); err != nil {
			return f, err
		}
	}
	f.forked, err = x.d.NewEvent(false)
	return f, err
}

func (f *frame) close(x *contexts) {
	gpu.DestroyEvents(x.d, append([]gpu.Event{f.start, f.end, f.forked}, f.joined...)...)
}

// fork makes every stream start behind the origin.
func (f *frame) fork(x *contexts) error {
	if err := x.on(0); err != nil {
		return err
	}
	if err := x.d.Record(f.forked, x.streams[0]); err != nil {
		return err
	}
	return x.eachStream(1, func(_ int, s gpu.Stream) error { return x.d.Wait(s, f.forked) })
}

// join makes the origin wait for every stream.
func (f *frame) join(x *contexts) error {
	if err := x.eachStream(1, func(i int, s gpu.Stream) error { return x.d.Record(f.joined[i], s) }); err != nil {
		return err
	}
	if err := x.on(0); err != nil {
		return err
	}
	for _, e := range f.joined[1:] {
		if err := x.d.Wait(x.streams[0], e); err != nil {
			return err
		}
	}
	return nil
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

func (x *contexts) measure(ctx context.Context, costs sim.CostModel) (*Result, error) {
	f, err := x.newFrame()
	if err != nil {
		return nil, err
	}
	defer f.close(x)
	r := &Result{Mode: x.cfg.Mode, Predicted: x.p.Predicted.Makespan, SMs: x.sms}
	r.Kernels = len(x.c.kernels)
	for _, n := range x.l.slab {
		r.Slab = append(r.Slab, units.Bytes(n))
	}
	eager := func() error {
		if err := f.fork(x); err != nil {
			return err
		}
		if err := x.issue(nil); err != nil {
			return err
		}
		return f.join(x)
	}
	body := eager
	if x.cfg.Mode == Captured {
		// One step first: whatever a first call sets up must not be captured.
		if _, _, err := x.step(f, 0, eager); err != nil {
			return nil, err
		}
		s, card := x.origin()
		if err := x.use(card); err != nil {
			return nil, err
		}
		exec, free, err := gpu.Capture(x.d, s, func() error { return errors.Join(eager(), x.use(card)) })
		if err != nil {
			return nil, err
		}
		defer free()
		body = func() error { return x.d.LaunchExec(exec, s) }
	}
	_, card := x.origin()
	uuid, _ := gpu.Identity(x.d, card.ordinal) // without it there are no states
	var issued []units.Seconds
	// While the host hands over a graph of many thousand nodes the device is held
	// back, so that the time is the device's alone.
	hold := units.Seconds(0)
	quickest := units.Seconds(0.5)
	for k := range x.cfg.Repeats + 1 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t, host, err := x.step(f, hold, body)
		if err != nil {
			return nil, err
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
	if x.cfg.Mode == Eager && r.Issue > r.Makespan*8/10 {
		r.Notes = append(r.Notes, fmt.Sprintf("the host needs %v to issue a step: measure as a graph for the device's own time", r.Issue))
	}
	for dev, at := range x.at {
		if at == nil && slices.ContainsFunc(x.c.kernels, func(k piece) bool { return k.dev == dev && k.launches() }) {
			r.Notes = append(r.Notes, "ops on "+x.p.Machine.Devices[dev].Name+" run on the thread that issues the others: their times are approximate")
		}
	}
	if x.cfg.Trace {
		if err := x.trace(f, r, costs); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// launching is what a graph's launch takes at the most beside its nodes.
const launching = 200e-6

func median(x []units.Seconds) units.Seconds {
	y := slices.Clone(x)
	slices.Sort(y)
	return y[len(y)/2]
}
