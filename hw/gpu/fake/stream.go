package fake

import (
	"fmt"

	"placer/hw/gpu"
)

type stream struct {
	at  float64 // end of what has been queued, nanoseconds
	dev int
	// What kernels reach here of the device's arithmetic and bandwidth.
	arithmetic, bandwidth float64
	cap                   *capture // the capture under way that the stream is part of
}

type event struct {
	at       float64
	dev      int
	recorded bool
	timing   bool
	cap      *capture // of the latest record
}

// capture is work that is recorded instead of done.
type capture struct {
	origin  gpu.Stream
	steps   []step
	invalid bool // a call has broken it; the rest of it fails
	ended   bool
}

// step is one piece of captured work: a record, a wait, or something that takes
// time.
type step struct {
	s      gpu.Stream
	record *event
	wait   *event
	ns     float64
	do     func()
}

func (c *capture) add(s step) error {
	if c.invalid {
		return gpu.Code(901)
	}
	c.steps = append(c.steps, s)
	return nil
}

// lookup returns what handle k stands for.
func lookup[K comparable, V any](m map[K]V, k K) (v V, err error) {
	v, ok := m[k]
	if !ok {
		err = gpu.InvalidHandle
	}
	return v, err
}

// remove forgets handle k.
func remove[K comparable, V any](m map[K]V, k K) error {
	_, err := lookup(m, k)
	delete(m, k)
	return err
}

func (g *GPU) stream(s gpu.Stream) (*stream, error) { return lookup(g.streams, s) }
func (g *GPU) event(e gpu.Event) (*event, error)    { return lookup(g.events, e) }

// pair returns a stream and an event.
func (g *GPU) pair(s gpu.Stream, e gpu.Event) (*stream, *event, error) {
	x, err := g.stream(s)
	if err != nil {
		return nil, nil, err
	}
	v, err := g.event(e)
	return x, v, err
}

func (g *GPU) NewStream(int) (gpu.Stream, error) {
	d, err := g.dev()
	if err != nil {
		return 0, err
	}
	s := gpu.Stream(g.handle())
	g.streams[s] = &stream{dev: d, arithmetic: 1, bandwidth: 1}
	return s, nil
}

func (g *GPU) DestroyStream(s gpu.Stream) error { return remove(g.streams, s) }

func (g *GPU) SyncStream(s gpu.Stream) error {
	x, err := g.stream(s)
	if err != nil {
		return err
	}
	if x.cap != nil {
		return gpu.Code(900)
	}
	g.now = max(g.now, x.at)
	return nil
}

func (g *GPU) NewEvent(timing bool) (gpu.Event, error) {
	d, err := g.dev()
	if err != nil {
		return 0, err
	}
	e := gpu.Event(g.handle())
	g.events[e] = &event{timing: timing, dev: d}
	return e, nil
}

func (g *GPU) DestroyEvent(e gpu.Event) error { return remove(g.events, e) }

func (g *GPU) Record(e gpu.Event, s gpu.Stream) error {
	x, v, err := g.pair(s, e)
	if err != nil {
		return err
	}
	if v.dev != x.dev {
		return fmt.Errorf("fake: an event of device %d recorded on a stream of device %d: %w", v.dev, x.dev, gpu.InvalidHandle)
	}
	g.now += g.cfg.Call
	v.recorded, v.cap = true, x.cap
	if x.cap != nil {
		return x.cap.add(step{s: s, record: v})
	}
	v.at = max(x.at, g.now)
	return nil
}

func (g *GPU) Wait(s gpu.Stream, e gpu.Event) error {
	x, v, err := g.pair(s, e)
	if err != nil {
		return err
	}
	if !v.recorded {
		return fmt.Errorf("fake: a wait for an event that was never recorded, which a GPU takes for no wait: %w", gpu.InvalidHandle)
	}
	g.now += g.cfg.Call
	switch {
	case v.cap != nil && v.cap.ended:
		return gpu.Code(907)
	case x.cap != nil && x.cap != v.cap:
		x.cap.invalid = true
		if v.cap != nil {
			return gpu.Code(902)
		}
		return gpu.Isolation
	}
	x.cap = v.cap // the stream joins the capture
	if x.cap != nil {
		return x.cap.add(step{s: s, wait: v})
	}
	x.at = max(x.at, v.at)
	return nil
}

func (g *GPU) SyncEvent(e gpu.Event) error {
	v, err := g.event(e)
	if err != nil {
		return err
	}
	if v.cap != nil {
		return gpu.Code(907)
	}
	g.now = max(g.now, v.at)
	return nil
}

func (g *GPU) ElapsedMS(a, b gpu.Event) (float32, error) {
	x, err := g.event(a)
	if err != nil {
		return 0, err
	}
	y, err := g.event(b)
	if err != nil {
		return 0, err
	}
	if !x.recorded || !y.recorded || !x.timing || !y.timing || x.cap != nil || y.cap != nil {
		return 0, gpu.InvalidHandle
	}
	if max(x.at, y.at) > g.now {
		return 0, gpu.NotReady
	}
	return float32((y.at - x.at) / 1e6), nil
}

// enqueue puts work of t nanoseconds on s. The data moves at once: the caller
// issues in an order that events allow, or the strict wait has failed.
func (g *GPU) enqueue(s gpu.Stream, t float64, do func()) error {
	x, err := g.stream(s)
	if err != nil {
		return err
	}
	g.now += g.cfg.Call
	if x.cap != nil {
		return x.cap.add(step{s: s, ns: t, do: do})
	}
	x.at = max(x.at, g.now) + t
	do()
	return nil
}

func (g *GPU) BeginCapture(s gpu.Stream) error {
	x, err := g.stream(s)
	if err != nil {
		return err
	}
	if x.cap != nil {
		return gpu.Code(901)
	}
	x.cap = &capture{origin: s}
	return nil
}

// EndCapture requires that every stream of the capture has been joined: what it
// did last lies before something of the origin.
func (g *GPU) EndCapture(s gpu.Stream) (gpu.Graph, error) {
	x, err := g.stream(s)
	if err != nil {
		return 0, err
	}
	c := x.cap
	if c == nil || c.origin != s {
		return 0, gpu.Code(901)
	}
	joined := map[gpu.Stream]bool{s: true}
	covered := map[*event]bool{}
	last := map[gpu.Stream]bool{} // streams whose latest step a later one still has to cover
	for i := len(c.steps) - 1; i >= 0; i-- {
		st := c.steps[i]
		switch {
		case st.wait != nil && joined[st.s]:
			covered[st.wait] = true
		case st.record != nil && covered[st.record]:
			joined[st.s] = true
		case !joined[st.s]:
			last[st.s] = true
		}
	}
	for _, y := range g.streams {
		if y.cap == c {
			y.cap = nil
		}
	}
	c.ended = true
	if c.invalid {
		return 0, gpu.Code(901)
	}
	if len(last) > 0 {
		return 0, gpu.Unjoined
	}
	h := gpu.Graph(g.handle())
	g.graphs[h] = c
	return h, nil
}

func (g *GPU) Instantiate(h gpu.Graph) (gpu.Exec, error) {
	c, err := lookup(g.graphs, h)
	if err != nil {
		return 0, err
	}
	e := gpu.Exec(g.handle())
	g.execs[e] = c
	return e, nil
}

// LaunchExec replays the captured work; kernels cost a node instead of a launch.
func (g *GPU) LaunchExec(e gpu.Exec, s gpu.Stream) error {
	c, err := lookup(g.execs, e)
	if err != nil {
		return err
	}
	x, err := g.stream(s)
	if err != nil {
		return err
	}
	g.now += g.cfg.Call
	start := max(x.at, g.now) + g.cfg.Launch
	at := map[gpu.Stream]float64{}
	reached := func(s gpu.Stream) float64 { return max(at[s], start) }
	recorded := map[*event]float64{}
	end := start
	for _, st := range c.steps {
		switch {
		case st.record != nil:
			recorded[st.record] = reached(st.s)
			if st.record.timing {
				st.record.at = reached(st.s)
			}
		case st.wait != nil:
			at[st.s] = max(reached(st.s), recorded[st.wait])
		default:
			at[st.s] = reached(st.s) + max(g.cfg.Node, st.ns-g.cfg.Launch+g.cfg.Node)
			st.do()
		}
		end = max(end, reached(st.s))
	}
	x.at = end
	return nil
}

func (g *GPU) DestroyGraph(h gpu.Graph) error { return remove(g.graphs, h) }
func (g *GPU) DestroyExec(e gpu.Exec) error   { return remove(g.execs, e) }
