package strategy

import (
	"placer/graph"
	"placer/units"
)

// Step is the graph of a strategy. Ops are in an order that a device may follow: the
// priorities of the strategy are 0, 1, ..., N'-1.
type Step struct {
	Graph    *graph.Graph
	Strategy Strategy
	// Rank is the rank whose device runs each op, [N'], and Stream says that it runs on the device's
	// stream for communication, beside what it computes.
	Rank   []int32
	Stream []bool
	// From is the op of the micro-batch's graph that each op is made from, [N'], None for
	// communication; Micro is its micro-batch, -1 for what is there once.
	From  []graph.OpID
	Micro []int32
	// Collectives are those of the step; Collective is that of an op that stands for its rank's whole
	// part in it, [N'], -1 for others. Folded steps have only such ops, others where Options.One says so.
	Collectives []Collective
	Collective  []int32
	// Folded says that the ranks of replica 0 and part 0 alone are there.
	Folded bool
	// Chunk is the chunk of each op of the micro-batch's graph, [N], and Bounds are the first blocks
	// of the chunks, [P*V].
	Chunk  []int32
	Bounds []int
}

// Kind says what a collective does.
type Kind uint8

// Kinds of collectives.
const (
	AllReduce Kind = iota
	ReduceScatter
	AllGather
	AllToAll // each rank sends a part of its own tensor to each other
)

var kindNames = [...]string{"AllReduce", "ReduceScatter", "AllGather", "AllToAll"}

func (k Kind) String() string { return kindNames[k] }

// Steps returns how many steps a ring of d ranks takes; each sends a d-th of the tensor.
func (k Kind) Steps(d int) int {
	if k == AllReduce {
		return 2 * (d - 1)
	}
	return d - 1
}

// Axis is a dimension of a mesh.
type Axis uint8

// Axes along which ranks communicate.
const (
	DataAxis    Axis = iota
	TensorAxis       // ranks that share products
	ExpertAxis       // replicas that share experts out: neighbours
	ReplicaAxis      // replicas that have the same experts, one of each such group
	TokenAxis        // replicas that share tokens out: neighbours
	StageAxis        // stages of a pipeline that hold the same weight
	NormAxis         // all ranks that have some of the gradients, at least those of a replica
)

// Collective is one collective of the ranks of a group.
type Collective struct {
	Kind  Kind
	Axis  Axis
	Stage int         // the first of StageAxis
	Bytes units.Bytes // of the whole tensor
	Ranks int         // D of the ring
	// Stages are, as bits, those of StageAxis, whose ranks at one place of a stage form a group.
	Stages uint64
}

// On reports whether ranks of a stage take part.
func (c Collective) On(stage int) bool {
	switch c.Axis {
	case StageAxis:
		return c.Stages&(1<<stage) != 0
	case NormAxis:
		return true
	}
	return c.Stage == stage
}

// Sent returns the bytes that each rank sends: 2(D-1)/D or (D-1)/D of the tensor.
func (c Collective) Sent() units.Bytes {
	return units.Bytes(c.Kind.Steps(c.Ranks)) * units.Bytes(ceil(int64(c.Bytes), int64(c.Ranks)))
}
