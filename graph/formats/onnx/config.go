package onnx

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"placer/units"
)

// maxDim bounds every dimension and every number that dimensions are computed
// from, so that sums of a few of them cannot overflow.
const maxDim = 1 << 48

// Config says how symbolic dimensions are resolved.
type Config struct {
	// Dims gives values to named dimensions (dim_param), "batch", "seq_len", and to
	// dimensions of inputs without a name, "x[0]".
	Dims map[string]int64
	// DefaultDim is the value of every other symbolic or unknown dimension of an
	// input.
	DefaultDim int64
	// Training says that a training step is derived from the graph: weights change from
	// step to step, so nothing that is computed from them is folded, and quantisation is
	// left as the nodes that emulate it.
	Training bool
	// External returns length bytes, from offset on, of the file of that name beside the
	// model's. It is asked for small constants alone, which shapes may depend on. nil: such
	// constants have no known values.
	External func(name string, offset, length int64) ([]byte, error)
}

// Default returns a Config that makes every symbolic dimension 1.
func Default() Config { return Config{DefaultDim: 1} }

// Validate reports every fault of c.
func (c Config) Validate() error {
	var errs []error
	if c.DefaultDim < 1 || c.DefaultDim > maxDim {
		errs = append(errs, fmt.Errorf("default dimension %d, want 1 to %d", c.DefaultDim, int64(maxDim)))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Dims)) {
		if d := c.Dims[name]; d < 0 || d > maxDim {
			errs = append(errs, fmt.Errorf("dimension %q is %d, want 0 to %d", name, d, int64(maxDim)))
		}
	}
	return errors.Join(errs...)
}

// Summary says what an import found.
type Summary struct {
	Producer string
	// Nodes counts the NodeProtos of the main graph, Edges the tensors that pass
	// from one of them to another: a tensor read twice is two edges.
	Nodes, Edges int
	// Inputs counts the inputs that are no initializers, Outputs the graph's
	// outputs, Initializers dense and sparse ones.
	Inputs, Outputs, Initializers int
	// Ops counts the ops of the graph: the nodes, and what feeds them.
	Ops int
	// Params counts the elements of all weights found.
	Params int64
	// Data are the names of the files that tensors of the main graph are in, sorted.
	Data []string
	// Tables counts the constants that stand where weights may and are none: sines and
	// cosines of positions, masks of scores. TableElements are in them.
	Tables        int
	TableElements int64
	// Folded counts the nodes that depend on constants and shapes alone: they do not run
	// in a step. FoldedBytes are held for what of their results is read.
	Folded      int
	FoldedBytes units.Bytes
	// Inlined counts the calls of model-local functions whose bodies stand in the graph.
	Inlined int
	// Quantized counts the products of 8-bit operands, integers or floats, that
	// DequantizeLinear nodes feed.
	Quantized int
	// Symbols lists the dimensions of the inputs that the file gives no value, in order
	// of occurrence, with the values used.
	Symbols []Symbol
	// UnknownDims are the names of Config.Dims that no shape of the file has, sorted.
	UnknownDims []string
	// Notes are remarks for the reader: assumptions that the costs rest on.
	Notes []string

	types map[string]tensorType // by the names of the main graph's tensors
}

// tensorType is what a value of the main graph is declared as.
type tensorType struct {
	elem elem
	dims []int64
}

// Type returns the element type, as TensorProto.DataType numbers it, and the dimensions of
// a tensor of the main graph, for the values that open ones have; 0 where the graph has no
// such tensor.
func (s *Summary) Type(tensor string) (elem int32, dims []int64) {
	t := s.types[tensor]
	return int32(t.elem), t.dims
}

// Symbol is a dimension without a value in the file: its name, or input and place,
// "x[0]".
type Symbol struct {
	Name  string
	Value int64
	Given bool // by Config.Dims
}
