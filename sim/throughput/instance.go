package throughput

import (
	"context"
	"fmt"
	"math"
	"slices"

	"placer/graph"
	"placer/hw"
	"placer/internal/unionfind"
	"placer/units"
)

// Instance is one graph on one machine as the objective sees it. It does not
// change after New, so goroutines may share it.
type Instance struct {
	Graph *graph.Graph
	// Block is the block of each op, [N]; Members are the ops of each block, [B].
	Block   []int32
	Members [][]graph.OpID
	// Size of each block in bytes, [B]: what it holds for good, and what solvers that
	// add up sizes allow for its outputs (Source.Allowance). Where Sums is set a
	// device's memory is the sum of its sizes, else its peak, which is no lower than
	// the sum without an allowance.
	Size []int64
	// Sums says that the graph is a published instance, which defines memory as a sum.
	Sums bool
	// Nets are the tensors that more than one block touches, without those that cost
	// nothing. Nets of the same blocks are one.
	Nets []Net
	// NetsOf lists the nets of each block, [B].
	NetsOf [][]int32
	// Classes of equal devices, and the class of each device, [D].
	Classes []Class
	ClassOf []int

	pipeline *pipeline // without scratch; nil where Sums is set
}

// Net is a tensor, or several of the same blocks.
type Net struct {
	Blocks  []int32 // ascending, each once
	Seconds float64
}

// Class is a set of devices with equal figures.
type Class struct {
	Devices []int
	CPU     bool // pays no communication
	Memory  int64
	Seconds []float64 // [B]; +Inf where a block cannot run
}

// Source is what an instance is made from.
type Source struct {
	Graph   *graph.Graph
	Machine *hw.Machine
	// Seconds of each op on each device, [D][N].
	Seconds [][]float64
	// Transfer of each tensor, [T]; nil: the time over the machine's slowest route
	// between two accelerators.
	Transfer []float64
	// Part joins ops into parts that stay together, [N]; nil: every op is free but
	// for its co-location group.
	Part []int32
	// Allowance is the share, 0 to 1, of a block's outputs that Size holds room for. It
	// is for solvers that add up sizes, and changes no judgement.
	Allowance float64
}

// New returns the instance of s. It is an error if ctx ends before.
func New(ctx context.Context, s Source) (*Instance, error) {
	n, d := s.Graph.NumOps(), s.Machine.NumDevices()
	if len(s.Seconds) != d || s.Transfer != nil && len(s.Transfer) != s.Graph.NumTensors() || s.Part != nil && len(s.Part) != n {
		panic(fmt.Sprintf("maxload: %d columns of seconds, %d transfers and %d parts for %d devices, %d tensors and %d ops",
			len(s.Seconds), len(s.Transfer), len(s.Part), d, s.Graph.NumTensors(), n))
	}
	x := &Instance{Graph: s.Graph}
	x.blocks(s.Part)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if x.Sums = published(s.Graph); !x.Sums {
		x.pipeline = newPipeline(s.Graph, d)
	}
	x.sizes(s.Allowance)
	x.classes(&s)
	transfer := s.Transfer
	if transfer == nil {
		transfer = transfers(s.Graph, s.Machine)
	}
	if !x.nets(ctx, transfer) {
		return nil, ctx.Err()
	}
	for c := range x.Classes {
		for b, t := range x.Classes[c].Seconds {
			if math.IsNaN(t) || t < 0 {
				return nil, fmt.Errorf("max load: op %d (%s) takes %v s on %s", x.Members[b][0], s.Graph.Op(x.Members[b][0]).Name, t, s.Machine.Devices[x.Classes[c].Devices[0]].Name)
			}
		}
	}
	return x, nil
}

// NumBlocks returns B.
func (x *Instance) NumBlocks() int { return len(x.Members) }

// NumDevices returns D.
func (x *Instance) NumDevices() int { return len(x.ClassOf) }

// Spread returns the placement of the ops, [N], that has block b on block[b].
func (x *Instance) Spread(block []uint8) []uint8 {
	device := make([]uint8, len(x.Block))
	for i, b := range x.Block {
		device[i] = block[b]
	}
	return device
}

// Gather returns the placement of the blocks, [B], that device, [N], stands for:
// that of each block's first op.
func (x *Instance) Gather(device []uint8) []uint8 {
	block := make([]uint8, len(x.Members))
	for b, m := range x.Members {
		block[b] = device[m[0]]
	}
	return block
}

// blocks joins the ops of one part and of one co-location group. Blocks are
// numbered by their first op.
func (x *Instance) blocks(part []int32) {
	n := x.Graph.NumOps()
	sets := unionfind.New(n)
	first, firstOfPart := map[int32]int32{}, map[int32]int32{}
	for i := range int32(n) {
		if g := x.Graph.Op(graph.OpID(i)).Group; g > 0 {
			if j, ok := first[g]; ok {
				sets.Join(i, j)
			} else {
				first[g] = i
			}
		}
		if part != nil {
			if j, ok := firstOfPart[part[i]]; ok {
				sets.Join(i, j)
			} else {
				firstOfPart[part[i]] = i
			}
		}
	}
	x.Block = make([]int32, n)
	number := make([]int32, n)
	for i := range int32(n) {
		r := sets.Root(i)
		if r == i {
			number[i] = int32(len(x.Members))
			x.Members = append(x.Members, nil)
		}
		b := number[r]
		x.Block[i] = b
		x.Members[b] = append(x.Members[b], graph.OpID(i))
	}
}

// published reports whether g is a partitioning instance of others, whose ops are
// whole layers of a stated size (dnn-partitioning, Piper, PipeDream).
func published(g *graph.Graph) bool {
	for i := range g.NumOps() {
		if g.Op(graph.OpID(i)).Kind != "Layer" {
			return false
		}
	}
	return true
}

// sizes counts what solvers add up: resident bytes and outputs, those of published
// instances in full.
func (x *Instance) sizes(allowance float64) {
	if x.Sums {
		allowance = 1
	}
	x.Size = make([]int64, len(x.Members))
	for b, ops := range x.Members {
		var outputs int64
		for _, i := range ops {
			x.Size[b] += int64(x.Graph.Op(i).Resident)
			first, end := x.Graph.Outputs(i)
			for t := first; t < end; t++ {
				if o := x.Graph.Tensor(t); !o.Resident {
					outputs += int64(o.Bytes)
				}
			}
		}
		x.Size[b] += int64(allowance * float64(outputs))
	}
}

// classes groups the devices: equal kind, memory and times.
func (x *Instance) classes(s *Source) {
	x.ClassOf = make([]int, s.Machine.NumDevices())
	for d := range s.Machine.Devices {
		v := &s.Machine.Devices[d]
		k := slices.IndexFunc(x.Classes, func(c Class) bool {
			e := c.Devices[0]
			return c.CPU == (v.Kind == hw.CPU) && c.Memory == int64(v.Memory) && (&s.Seconds[e][0] == &s.Seconds[d][0] || slices.Equal(s.Seconds[e], s.Seconds[d]))
		})
		if k < 0 {
			k = len(x.Classes)
			c := Class{CPU: v.Kind == hw.CPU, Memory: int64(v.Memory), Seconds: make([]float64, len(x.Members))}
			for i, b := range x.Block {
				c.Seconds[b] += s.Seconds[d][i]
			}
			x.Classes = append(x.Classes, c)
		}
		x.Classes[k].Devices = append(x.Classes[k].Devices, d)
		x.ClassOf[d] = k
	}
}

// transfers returns the time of each tensor over the slowest route between two
// accelerators of m.
func transfers(g *graph.Graph, m *hw.Machine) []float64 {
	type route struct {
		latency   units.Seconds
		bandwidth units.BytesPerSecond
	}
	var routes []route // each once
	for a := range m.Devices {
		for b := range m.Devices {
			if a != b && m.Devices[a].Kind != hw.CPU && m.Devices[b].Kind != hw.CPU {
				var r route
				if r.latency, r.bandwidth = m.Transfer(a, b); !slices.Contains(routes, r) {
					routes = append(routes, r)
				}
			}
		}
	}
	seconds := make([]float64, g.NumTensors())
	for t := range seconds {
		bytes := g.Tensor(graph.TensorID(t)).Bytes
		for _, r := range routes {
			seconds[t] = max(seconds[t], float64(r.latency+bytes.Over(r.bandwidth)))
		}
	}
	return seconds
}

// nets lists the tensors by the blocks that touch them, unless ctx ends.
func (x *Instance) nets(ctx context.Context, transfer []float64) bool {
	touched := 0
	for t := range graph.TensorID(len(transfer)) {
		touched += 1 + len(x.Graph.Consumers(t))
	}
	tensors := make([]Net, 0, len(transfer)) // their blocks are ops
	ops := make([]int32, 0, touched)         // of all of them
	for t := range graph.TensorID(len(transfer)) {
		if transfer[t] == 0 {
			continue
		}
		first := len(ops)
		ops = append(ops, int32(x.Graph.Tensor(t).Producer))
		for _, v := range x.Graph.Consumers(t) {
			ops = append(ops, int32(v))
		}
		tensors = append(tensors, Net{ops[first:], transfer[t]})
	}
	x.Nets = merge(ctx, tensors, func(op int32) int32 { return x.Block[op] })
	if ctx.Err() != nil {
		return false
	}
	x.NetsOf = make([][]int32, len(x.Members))
	for e, n := range x.Nets {
		for _, b := range n.Blocks {
			x.NetsOf[b] = append(x.NetsOf[b], int32(e))
		}
	}
	return true
}

// merge returns nets between the sets that their blocks are in: a net within one set
// is left out, and nets of the same sets become one. When ctx ends some are missing.
func merge(ctx context.Context, nets []Net, set func(block int32) int32) (merged []Net) {
	last := make(map[uint64]int32, len(nets)) // by hash of the sets: the last net of it, plus 1
	var before []int32                        // [merged] the one before with that hash, plus 1
	var sets []int32
	for k, n := range nets {
		if k&0xffff == 0xffff && ctx.Err() != nil {
			break
		}
		sets = sets[:0]
		for _, b := range n.Blocks {
			sets = append(sets, set(b))
		}
		slices.Sort(sets)
		if sets = slices.Compact(sets); len(sets) < 2 {
			continue
		}
		h := uint64(len(sets))
		for _, v := range sets {
			h = (h ^ uint64(v)) * 0x9e3779b97f4a7c15
			h ^= h >> 29
		}
		e := last[h]
		for e > 0 && !slices.Equal(merged[e-1].Blocks, sets) {
			e = before[e-1]
		}
		if e > 0 {
			merged[e-1].Seconds += n.Seconds
			continue
		}
		before = append(before, last[h])
		merged = append(merged, Net{slices.Clone(sets), n.Seconds})
		last[h] = int32(len(merged))
	}
	return merged
}
