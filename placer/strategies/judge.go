package strategies

import (
	"errors"
	"fmt"
	"slices"

	"placer/baselines/search/fusion"
	"placer/graph"
	"placer/graph/fuse"
	"placer/graph/strategy"
	"placer/hw"
	"placer/placer/problem"
	"placer/plan"
	"placer/roofline"
	"placer/sim"
	"placer/units"
)

// ErrTimes says that strategies need costs that can be derived: a file's times are those
// of its own ops.
var ErrTimes = errors.New("strategies need a graph whose op times are derived, the file gives them")

// Judge simulates steps on one machine. It serves one goroutine.
type Judge struct {
	Machine  *hw.Machine // its ranks' devices, in the order of ranks
	streamed *hw.Machine // nil where so many devices cannot have streams beside them
	model    roofline.Config
	fold     bool
	known    map[ringKey]times
	fabrics  map[ringKey]fabric // by collectives of no bytes; of no ranks where none is known
	base     *hw.Machine        // the devices in the machine's order
	order    []int              // place in base of each device; nil: its own
	// Eager runs every op as a kernel of its own. Otherwise ops are fused by the default
	// rules, as a search's plans are that decide on fusion.
	Eager bool
	// OneShot says that all-reduces may go by kernels of the system's own, in which every GPU reads
	// what all others have, where that is quicker than NCCL: vLLM's and SGLang's custom
	// all-reduces, TensorRT-LLM's, PyTorch's of symmetric memory.
	OneShot bool
}

type ringKey struct {
	mesh       strategy.Mesh
	collective strategy.Collective
}

// NewJudge returns a judge of steps on the devices of m that ranks go on, with op times
// by the roofline model of s's settings.
func NewJudge(s problem.Source, m *hw.Machine) (*Judge, error) {
	if s.Times != nil || s.Seconds != nil {
		return nil, ErrTimes
	}
	j := &Judge{Machine: m.Keep(m.Ranks()), model: roofline.Default(), known: map[ringKey]times{}, fabrics: map[ringKey]fabric{}}
	if s.Roofline != nil {
		j.model = *s.Roofline
	}
	var err error
	if j.streamed, err = withStreams(j.Machine); err != nil && !errors.Is(err, errStreams) {
		return nil, err
	}
	j.base, j.fold = j.Machine, Symmetric(j.Machine)
	return j, nil
}

// clone returns a judge for another goroutine.
func (j *Judge) clone() *Judge {
	c := *j
	c.known, c.fabrics = map[ringKey]times{}, map[ringKey]fabric{}
	return &c
}

// costs are the op times of a step.
type costs struct {
	step    *strategy.Step
	ops     *roofline.Model
	n       int       // devices
	seconds []float64 // of collectives that one op of a rank stands for
}

// Parts implements sim.KernelCostModel. Communication is never fused.
func (c *costs) Parts(op graph.OpID, device int) fuse.Parts {
	if c.step.Collective[op] >= 0 || c.step.Stream[op] || device >= c.n {
		return fuse.Parts{Compute: c.OpSeconds(op, device)}
	}
	return c.ops.Parts(op, device)
}

// OpSeconds implements sim.CostModel.
func (c *costs) OpSeconds(op graph.OpID, device int) units.Seconds {
	if k := c.step.Collective[op]; k >= 0 {
		return units.Seconds(c.seconds[k])
	}
	if c.step.Stream[op] || device >= c.n {
		return roofline.InPlace
	}
	return c.ops.OpSeconds(op, device)
}

// Result is a step as it was judged.
type Result struct {
	Step    *strategy.Step
	Bounds  []int // of Step's stages, [P*V]
	Seconds float64
	// Order is the device of each rank, nil where rank k is on device k.
	Order []int
	On    []string // names of these devices
	// Peak is the most that a device holds, with what its stream holds, [D]; of ranks that
	// are folded away it is 0.
	Peak []units.Bytes
	// Held is what a device holds throughout: parameters and the like, keys and values; [D], 0 where
	// Peak is.
	Held     []units.Bytes
	Overflow units.Bytes
	// Full says that what devices hold throughout is more than they have, however stages are cut:
	// parameters, their optimizer's state, keys and values.
	Full bool
	// Bubble is the share of the step in which devices do not compute, the mean over
	// those with ops.
	Bubble float64
	// Traffic is what all ranks send in a step.
	Traffic units.Bytes
	Ops     int
}

// Fullest returns the most that any device holds.
func (r *Result) Fullest() (b units.Bytes) {
	for _, p := range r.Peak {
		b = max(b, p)
	}
	return b
}

// Score is the step as the score of a plan.
func (r *Result) Score() plan.Score { return plan.Score{Value: r.Seconds, Overflow: r.Overflow} }

// Simulator returns the simulator of a step and the decision that its strategy makes.
func (j *Judge) Simulator(x *strategy.Step) (*sim.Simulator, plan.Decision, error) {
	on, streamed, index, err := j.devices(x)
	if err != nil {
		return nil, plan.Decision{}, err
	}
	n := on.NumDevices()
	ops, err := roofline.New(x.Graph, on, j.model)
	if err != nil {
		return nil, plan.Decision{}, err
	}
	c := &costs{step: x, ops: ops, n: n, seconds: make([]float64, len(x.Collectives))}
	for _, k := range x.Collective {
		if k >= 0 && c.seconds[k] == 0 {
			if c.seconds[k], err = j.collectiveSeconds(x.Strategy.Mesh, x.Collectives[k]); err != nil {
				return nil, plan.Decision{}, err
			}
		}
	}
	s, err := sim.New(x.Graph, streamed, c, sim.Default())
	if err != nil {
		return nil, plan.Decision{}, err
	}
	d := plan.Decision{Device: make([]uint8, len(x.Rank)), Priority: make([]int32, len(x.Rank))}
	for i, r := range x.Rank {
		d.Device[i], d.Priority[i] = index[r], int32(i)
		if x.Stream[i] {
			d.Device[i] += uint8(n)
		}
	}
	if !j.Eager && len(x.Collectives) < len(x.Rank) { // rings alone have nothing to fuse
		// Where the device of an op and that of its reader differ they are not fused,
		// whatever the priorities say.
		d.Fusion = fusion.Default(fuse.NewRules(x.Graph), make([]uint8, len(x.Rank)))
	}
	return s, d, nil
}

// devices returns the machine that x is simulated on, the same with streams, and which device of it
// each rank goes on: that of all ranks, or where their streams are too many that of the ranks which
// stand for all.
func (j *Judge) devices(x *strategy.Step) (on, streamed *hw.Machine, index []uint8, err error) {
	n := j.Machine.NumDevices()
	if most := slices.Max(x.Rank); int(most) >= n {
		return nil, nil, nil, fmt.Errorf("%v: rank %d, machine %s has %d devices", x.Strategy, most, j.Machine.Name, n)
	}
	keep := j.ranks(x)
	index = make([]uint8, n)
	for k, r := range keep {
		index[r] = uint8(k)
	}
	if j.streamed != nil {
		return j.Machine, j.streamed, index, nil
	}
	on = j.Machine.Keep(keep)
	streamed, err = withStreams(on)
	return on, streamed, index, err
}

// ranks returns the rank of each device that x is simulated on.
func (j *Judge) ranks(x *strategy.Step) (keep []int) {
	used := make([]bool, j.Machine.NumDevices())
	for _, r := range x.Rank {
		used[r] = true
	}
	for r := range used {
		if used[r] || j.streamed != nil {
			keep = append(keep, r)
		}
	}
	return keep
}

// Run simulates a step.
func (j *Judge) Run(x *strategy.Step) (*Result, error) {
	s, d, err := j.Simulator(x)
	if err != nil {
		return nil, err
	}
	return j.run(x, s, d)
}

// run is Run under a decision of the caller's.
func (j *Judge) run(x *strategy.Step, s *sim.Simulator, d plan.Decision) (*Result, error) {
	ranks := j.ranks(x)
	n := len(ranks)
	r, err := s.Run(&plan.Plan{Decision: d}, sim.Options{})
	if r == nil {
		return nil, err
	}
	out := &Result{Step: x, Bounds: x.Bounds, Order: j.order, Seconds: float64(r.Makespan), Peak: make([]units.Bytes, j.Machine.NumDevices()), Held: make([]units.Bytes, j.Machine.NumDevices()), Ops: x.Graph.NumOps()}
	for k := range j.order {
		out.On = append(out.On, j.Machine.Devices[k].Name)
	}
	used, busy := make([]bool, n), 0.0
	held := make([]units.Bytes, n)
	for i, v := range d.Device {
		held[int(v)%n] += x.Graph.Op(graph.OpID(i)).Resident
		if int(v) < n && !x.Stream[i] {
			used[v] = true
		}
	}
	devices := 0
	var holds, has units.Bytes
	for k, rank := range ranks {
		memory := j.Machine.Devices[rank].Memory
		peak := r.PeakBytes[k] + r.PeakBytes[n+k]
		device := rank
		if j.order != nil {
			device = j.order[rank]
		}
		out.Peak[device], out.Held[device] = peak, held[k]
		out.Overflow += max(0, peak-memory)
		if held[k] > 0 {
			holds, has = holds+held[k], has+memory
		}
		out.Full = out.Full || x.Strategy.Pipeline == 1 && held[k] > memory
		if used[k] {
			devices++
			busy += float64(r.Busy[k])
		}
	}
	out.Full = out.Full || holds > has
	if x.Folded {
		out.Overflow *= units.Bytes(x.Strategy.Data * x.Strategy.Tensor)
	}
	if devices > 0 && out.Seconds > 0 {
		out.Bubble = max(0, 1-busy/(float64(devices)*out.Seconds)) // kernels are summed in another order than run
	}
	out.Traffic = traffic(x, d.Device, n)
	return out, nil
}

// traffic adds up what devices send to others.
func traffic(x *strategy.Step, device []uint8, n int) (b units.Bytes) {
	g := x.Graph
	for t := range graph.TensorID(g.NumTensors()) {
		from := int(device[g.Tensor(t).Producer]) % n
		sent := uint64(0)
		for _, v := range g.Consumers(t) {
			to := int(device[v]) % n
			if to != from && sent&(1<<to) == 0 {
				sent |= 1 << to
				b += g.Tensor(t).Bytes
			}
		}
	}
	if x.Folded {
		b *= units.Bytes(x.Strategy.Data * x.Strategy.Tensor)
	}
	return b + sent(x)
}
