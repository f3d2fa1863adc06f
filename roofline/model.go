package roofline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"placer/graph"
	"placer/graph/fuse"
	"placer/hw"
	"placer/units"
)

// Model predicts every op of one graph on every device of one machine. It does
// not change once made, so goroutines may share it.
type Model struct {
	graph   *graph.Graph
	machine *hw.Machine
	cfg     Config
	of      []int             // [D] device -> table
	table   [][]units.Seconds // per distinct device: [N]
	parts   [][]fuse.Parts    // per distinct device: [N]
	device  []*deviceModel    // per distinct device
}

// New returns the model of g on m. It computes one table per distinct device.
func New(g *graph.Graph, m *hw.Machine, cfg Config) (*Model, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("roofline: %w", err)
	}
	r := &Model{graph: g, machine: m, cfg: cfg, of: make([]int, m.NumDevices())}
	for d := range m.Devices {
		v := &m.Devices[d]
		k := slices.IndexFunc(r.device, func(e *deviceModel) bool { return e.dev.SameFigures(v) })
		if k < 0 {
			k = len(r.device)
			x := newDeviceModel(v, cfg)
			if err := x.p.Validate(); err != nil {
				return nil, fmt.Errorf("roofline: constants of %s: %w", v.Name, err)
			}
			t, parts := make([]units.Seconds, g.NumOps()), make([]fuse.Parts, g.NumOps())
			for i := range t {
				o := g.Op(graph.OpID(i))
				c := x.cost(o)
				t[i], parts[i] = c.Seconds(), fuse.Parts{Compute: c.Compute, PerByte: 1 / float64(x.bandwidthOf(o, patternOf(o))), Launch: c.Launch}
			}
			r.device, r.table, r.parts = append(r.device, x), append(r.table, t), append(r.parts, parts)
		}
		r.of[d] = k
	}
	return r, nil
}

// OpSeconds returns the time of op i on device d, above zero.
func (r *Model) OpSeconds(i graph.OpID, d int) units.Seconds { return r.table[r.of[d]][i] }

// Seconds returns the times of all ops on device d, [N], read-only.
func (r *Model) Seconds(d int) []units.Seconds { return r.table[r.of[d]] }

// Parts returns what the time of a kernel with op i on device d depends on.
func (r *Model) Parts(i graph.OpID, d int) fuse.Parts { return r.parts[r.of[d]][i] }

// Kernel returns the cost of ops fused into one kernel on device d: their
// arithmetic one after the other, the bytes that enter or leave the kernel, each
// at the bandwidth of the op that reads or writes it, and one launch, the longest
// of theirs. What passes between the ops touches no memory (fuse.Traffic). A kernel never takes longer than its ops
// one by one.
func (r *Model) Kernel(ops []graph.OpID, d int) (c Cost) {
	if len(ops) == 1 {
		return r.Cost(ops[0], d)
	}
	role := fuse.Roles(r.graph)
	inside := func(i graph.OpID) bool { return slices.Contains(ops, i) }
	for _, i := range ops {
		p := r.Parts(i, d)
		bytes := fuse.Traffic(r.graph, role, i, inside)
		c.Compute += p.Compute
		c.Memory += units.Seconds(float64(bytes) * p.PerByte)
		c.Launch = max(c.Launch, p.Launch)
	}
	return c
}

// Cost returns the parts of op i's time on device d.
func (r *Model) Cost(i graph.OpID, d int) Cost {
	return newDeviceModel(r.device[r.of[d]].dev, r.cfg).cost(r.graph.Op(i))
}

// deviceModel costs ops on one device.
type deviceModel struct {
	dev      *hw.Device
	cfg      Config
	p        Params
	products map[productKey]units.Seconds // graphs repeat few shapes many times
}

// productKey is what the time of a product depends on beside its device and the constants:
// the type whose rate it has, the class of the op, whose pattern says at which bandwidth
// partial sums are kept, the op's own type, which has the rate of vector units, and its kind
// where that is attention.
type productKey struct {
	graph.GEMM
	t, own graph.DType
	class  graph.Class
	// attention is the kind of attention in one kernel, "" for others.
	attention graph.Kind
}

func newDeviceModel(v *hw.Device, cfg Config) *deviceModel {
	return &deviceModel{dev: v, cfg: cfg, p: cfg.params(v), products: map[productKey]units.Seconds{}}
}

// reset makes q the constants for products of type t.
func (x *deviceModel) reset(t graph.DType, q GEMMParams) {
	x.p = x.p.With(t, q)
	clear(x.products)
}

// rate returns the peak of products of type t, precise or not, and the type whose
// constants apply.
func (x *deviceModel) rate(t graph.DType, precise bool) (units.FLOPsPerSecond, graph.DType) {
	if t == graph.F32 && x.cfg.TF32 && !precise {
		t = graph.TF32
	}
	if r, ok := x.dev.Peak[t.String()]; ok {
		return r, t
	}
	if t == graph.F8 || t == graph.F4 { // kernels for such numbers multiply in 16 bits, which hold them exactly
		return x.rate(graph.F16, precise)
	}
	if t == graph.I8 { // no slower than the floats that hold such integers exactly
		return x.rate(graph.F32, precise)
	}
	return x.dev.Peak["f32"], graph.F32
}

// vector returns the rate of arithmetic outside products. A peak of f64 may be that of matrix
// units; vector units do no more than half of f32 (CUDA's table of arithmetic throughput).
func (x *deviceModel) vector(t graph.DType) units.FLOPsPerSecond {
	r := x.dev.Peak["f32"]
	if f, ok := x.dev.Peak["f64"]; ok && t == graph.F64 {
		r = min(f, r/2)
	}
	return r * units.FLOPsPerSecond(x.p.Vector)
}

// thin returns the rate of products too thin for tiles (a column, a depthwise filter), which run
// on the vector units. In f64 they have the share of the peak that others have of f32's: with
// half of it, where that is matrix units', constants fit an H200 worse, 7.8% for 7.6%.
func (x *deviceModel) thin(t graph.DType) units.FLOPsPerSecond {
	if f, ok := x.dev.Peak["f64"]; ok && t == graph.F64 {
		return f * units.FLOPsPerSecond(x.p.Vector)
	}
	return x.vector(t)
}

// patternOf returns the class whose access pattern op o has: kinds that launch nothing, as
// part of a kernel, that of elementwise ops; loops and recurrent layers of one kernel that
// is a product, that of products; others their own.
func patternOf(o *graph.Op) graph.Class {
	class := o.Kind.Class()
	switch {
	case class == graph.ClassMeta:
		return graph.ClassElementwise
	case class == graph.ClassOther && o.Repeats > 1 && o.Kernels <= 1 && !o.GEMM.IsZero():
		return graph.ClassGEMM
	}
	return class
}

// bandwidth returns what ops of elements of type t reach with the access pattern of class.
func (x *deviceModel) bandwidth(class graph.Class, t graph.DType) units.BytesPerSecond {
	p := &x.p.Pattern[class]
	b := x.dev.MemoryBandwidth * units.BytesPerSecond(x.p.Bandwidth*p.fraction())
	if p.Elements > 0 {
		b = min(b, units.BytesPerSecond(p.Elements*1e9*float64(x.dev.SMs)*float64(t.Size())))
	}
	return b
}

// bandwidthOf returns what op o reaches as a kernel with the access pattern of class.
func (x *deviceModel) bandwidthOf(o *graph.Op, class graph.Class) units.BytesPerSecond {
	if !o.GEMM.IsZero() {
		_, t := x.rate(o.DType, o.Precise)
		if memory := cmp.Or(x.p.gemm(t).Memory, x.p.Products); memory > 0 {
			return x.dev.MemoryBandwidth * units.BytesPerSecond(memory)
		}
	}
	return x.bandwidth(class, o.DType)
}

// blockBytes is what a block of a kernel that memory bounds reads or writes at
// a time: 16 bytes for each of 256 threads.
const blockBytes = 4096

// cost returns the time of op o: of one iteration, as often as it runs. Kernels of an
// iteration behind the first start as those do that are no products.
func (x *deviceModel) cost(o *graph.Op) Cost {
	facts, _ := graph.FactsOf(o.Kind)
	if facts.InPlace {
		return Cost{Launch: InPlace}
	}
	if !facts.Class.Launches() {
		return Cost{Launch: x.cfg.Bookkeeping}
	}
	repeats, kernels := o.Iterations()
	if repeats*kernels == 1 {
		return x.kernel(o, patternOf(o))
	}
	once, n := *o, units.Seconds(repeats)
	once.FLOPs /= units.FLOPs(repeats)
	once.Bytes /= units.Bytes(repeats)
	c := x.kernel(&once, patternOf(o))
	c.Launch += units.Seconds(kernels-1) * (x.dev.Launch + x.p.Ramp)
	return Cost{n * c.Compute, n * c.Memory, n * c.Launch}
}

// kernel returns the time of op o as one kernel with the access pattern of class.
func (x *deviceModel) kernel(o *graph.Op, class graph.Class) Cost {
	bandwidth := x.bandwidthOf(o, class)
	c := Cost{Memory: o.Bytes.Over(bandwidth), Launch: x.dev.Launch}
	if o.GEMM.IsZero() {
		c.Compute = o.FLOPs.Over(x.vector(o.DType))
		c.Launch += x.p.Ramp + x.p.Pattern[class].Wait + x.p.Fill*units.Seconds(min(1, float64(o.Bytes)/float64(x.dev.SMs*blockBytes)))
	} else {
		rate, t := x.rate(o.DType, o.Precise)
		q := x.p.gemm(t)
		key := productKey{o.GEMM, t, o.DType, class, ""}
		attends := !x.cfg.Plain && (o.Kind == graph.Attention || o.Kind == graph.AttentionGrad)
		if attends {
			key.attention = o.Kind
		}
		s, ok := x.products[key]
		if !ok {
			if attends {
				s = x.p.attention(o, rate, x.vector(o.DType), &q, x.dev.SMs, bandwidth)
			} else {
				s = q.product(o.GEMM, rate, x.dev.SMs, bandwidth)
			}
			s = min(s, o.GEMM.FLOPs().Over(x.thin(o.DType)))
			x.products[key] = s
		}
		if x.cfg.Plain {
			m := o.GEMM
			operands := units.Bytes(m.Batch * (m.M*m.K + m.K*m.N + m.M*m.N) * o.DType.Size())
			s = max(s, operands.Over(bandwidth))
		}
		if q.Odd > 1 && !attends && odd(o.GEMM, t) {
			s *= units.Seconds(q.Odd)
		}
		c.Compute = s + max(0, o.FLOPs-o.GEMM.FLOPs()).Over(x.vector(o.DType))
		c.Launch += q.Fixed
	}
	// A device without launch time and an op without work still take a moment.
	c.Launch = max(c.Launch, x.cfg.Bookkeeping)
	return c
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
