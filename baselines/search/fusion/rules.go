package fusion

import (
	"slices"

	"placer/graph"
	"placer/graph/fuse"
)

// None fuses nothing: priorities of n ops.
func None(n int) []uint8 { return make([]uint8, n) }

// All lets every op be fused with its readers, the last in the order of fusion
// first.
func All(n int) []uint8 { return slices.Repeat([]uint8{1}, n) }

// activations are the ops that TensorFlow's remapper takes into the kernel of a
// product, a convolution or a batch norm (core/grappler/optimizers/remapper.cc,
// TensorFlow 1.15): Relu, Relu6 and Elu; Tanh and Sigmoid came later for products.
var activations = []graph.Kind{"Relu", "Relu6", "Elu"}

// Remapper is what TensorFlow 1.15 fuses without a compiler, by Grappler's
// remapper: MatMul or Conv2D (depthwise too) with the BiasAdd that reads it and
// the Relu, Relu6 or Elu that reads that; a convolution with its batch norm is for
// inference alone and not here; FusedBatchNorm with the Relu that reads it,
// directly or through one Add. Every op but the last has a single reader of its
// elements, which is on the same device.
func Remapper(r *fuse.Rules, device []uint8) []uint8 {
	g := r.Graph()
	f := None(g.NumOps())
	for i := range f {
		u := graph.OpID(i)
		switch kind := g.Op(u).Kind; kind {
		case "MatMul", "Conv2D", "DepthwiseConv2dNative":
			bias := only(r, device, u)
			if bias == graph.None || g.Op(bias).Kind != "BiasAdd" || r.Role(u) != graph.FuseAnchor {
				continue
			}
			f[u] = 1
			if act := only(r, device, bias); act != graph.None && slices.Contains(activations, g.Op(act).Kind) {
				f[bias] = 1
			}
		case "FusedBatchNorm", "FusedBatchNormV3":
			next := only(r, device, u)
			if next == graph.None {
				continue
			}
			if slices.Contains(activations, g.Op(next).Kind) {
				f[u] = 1
			} else if k := g.Op(next).Kind; k == "Add" || k == "AddV2" {
				if act := only(r, device, next); act != graph.None && slices.Contains(activations, g.Op(act).Kind) {
					f[u], f[next] = 1, 1
				}
			}
		}
	}
	return f
}

// only returns the op that alone reads the elements of op u's first output, if it
// may share u's kernel on device; else None. Batch norm's other outputs are
// statistics, which do not count.
func only(r *fuse.Rules, device []uint8, u graph.OpID) graph.OpID {
	g := r.Graph()
	first, end := g.Outputs(u)
	if first == end { // ops of a trace may be tied by control dependencies alone
		return graph.None
	}
	reader := graph.None
	for _, v := range g.Consumers(first) {
		if f, _ := graph.FactsOf(g.Op(v).Kind); f.ReadsShape {
			continue
		}
		if reader != graph.None {
			return graph.None
		}
		reader = v
	}
	if reader == graph.None || device[reader] != device[u] || !r.CanFuse(u, reader) {
		return graph.None
	}
	return reader
}

// expensive are the kinds that XLA's instruction fusion does not compute again
// for a second reader (IsExpensive in instruction_fusion.cc).
var expensive = []graph.Kind{"Exp", "Log", "Pow", "Sqrt", "Rsqrt", "Tanh", "Sigmoid", "Sin", "Cos", "Erf", "Div", "RealDiv", "RandomUniform", "RandomStandardNormal"}

// Default is what the papers call TensorFlow's default, as this project reads it:
// TensorFlow 1.15 with its XLA compiler. What Remapper fuses, and what XLA's
// producer-consumer fusion (instruction_fusion.cc, gpu/instruction_fusion.cc)
// does: an elementwise op, a copy or a view goes into the kernels of its readers
// if all that read its elements may take it, on the same device; an op that is
// expensive to compute only if it has but one reader; last op first. A reduction
// ends its kernel; products belong to libraries.
//
// GO's figures for it (2 to 24% on table 3's graphs) are out of reach of Remapper
// alone, which finds next to nothing in training graphs.
func Default(r *fuse.Rules, device []uint8) []uint8 {
	g := r.Graph()
	f := Remapper(r, device)
	for i := range f {
		u := graph.OpID(i)
		if role := r.Role(u); role != graph.FuseLoop && role != graph.FuseView {
			continue
		}
		readers, all := 0, true
		first, end := g.Outputs(u)
		for t := first; t < end; t++ {
			for _, v := range g.Consumers(t) {
				if x, _ := graph.FactsOf(g.Op(v).Kind); x.ReadsShape {
					continue
				}
				readers++
				all = all && device[v] == device[u] && r.CanFuse(u, v)
			}
		}
		if all && readers > 0 && (readers == 1 || !slices.Contains(expensive, g.Op(u).Kind)) {
			f[u] = 1
		}
	}
	return f
}
