package graph

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
)

// computeHash digests ops, tensors and edges in order, each field at a fixed
// width or behind its length.
func (g *Graph) computeHash() string {
	h := sha256.New()
	w := bufio.NewWriterSize(h, 1<<16)
	var buf [8]byte
	num := func(x int64) { binary.LittleEndian.PutUint64(buf[:], uint64(x)); w.Write(buf[:]) }
	str := func(s string) { num(int64(len(s))); w.WriteString(s) }
	str("placer graph 1")
	num(int64(len(g.ops)))
	for i := range g.ops {
		o := &g.ops[i]
		str(o.Name)
		str(string(o.Kind))
		arithmetic := int64(o.DType)
		if o.Precise { // which graphs from before do not say
			arithmetic |= 1 << 8
		}
		repeats, kernels := o.Iterations()
		if repeats*kernels > 1 { // nor this
			arithmetic |= 1 << 9
		}
		for _, x := range []int64{int64(o.Phase), arithmetic, int64(math.Float64bits(float64(o.FLOPs))), o.GEMM.Batch, o.GEMM.M, o.GEMM.N, o.GEMM.K,
			int64(o.Bytes), int64(o.Resident), o.Params, int64(o.Workspace), int64(o.Layer), int64(o.Group), int64(o.Forward)} {
			num(x)
		}
		if repeats*kernels > 1 {
			num(repeats)
			num(kernels)
		}
		num(int64(len(g.Inputs(OpID(i)))))
		for _, t := range g.Inputs(OpID(i)) {
			num(int64(t))
		}
		num(int64(len(g.Control(OpID(i)))))
		for _, c := range g.Control(OpID(i)) {
			num(int64(c))
		}
		first, end := g.Outputs(OpID(i))
		num(int64(end - first))
		for t := first; t < end; t++ {
			x := &g.tensors[t]
			num(int64(x.DType))
			num(int64(x.Bytes))
			resident := int64(0)
			if x.Resident {
				resident = 1
			}
			num(resident)
			num(int64(len(x.Shape)))
			for _, d := range x.Shape {
				num(d)
			}
		}
	}
	w.Flush()
	return hex.EncodeToString(h.Sum(nil))
}
