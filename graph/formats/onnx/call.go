package onnx

import (
	"fmt"
	"math"

	"placer/graph"
	"placer/internal/words"
	"placer/units"
)

// call is one node while its outputs are inferred. A rule reads the inputs by
// the methods below and sets outputs and costs; the methods end the rule by a
// panic of type bail when the node is wrong, which infer turns into an error.
type call struct {
	imp   *importer
	node  *node
	scope *scope
	in    []*tensor // nil where an optional input is absent
	out   []*tensor // one for each of the node's outputs

	kind     graph.Kind
	products []graph.GEMM // that an iteration of the op consists of
	flops    units.FLOPs  // of all iterations, beside the products; negative: as the kind's facts say
	repeats  int64        // iterations that follow one another, and the kernels of each, as of
	kernels  int64        // a graph.Op
	host     bool         // shape arithmetic, which runs beside the devices

	bytes units.Bytes // read and written; graph.Auto: as the kind's facts say

	// Of nodes with a body.
	workspace  units.Bytes
	resident   units.Bytes
	params     int64
	arithmetic *graph.DType // of its dearest products; nil where it has none
}

// bail carries an error out of a rule. dynamic errors say that a shape depends
// on data; the shapes recorded in the file may then do.
type bail struct {
	err     error
	dynamic bool
}

// misfit is the error that a rule cannot take what it is given.
type misfit struct{ error }

func (m misfit) Unwrap() error { return m.error }

func (c *call) fail(format string, a ...any) { panic(bail{err: fmt.Errorf(format, a...)}) }

// notConstant fails because the shape depends on the elements of input i.
func (c *call) notConstant(i int) { panic(bail{dataDependent(i), true}) }

// dataDependent is the error that a shape depends on the elements of that input.
type dataDependent int

func (d dataDependent) Error() string {
	return fmt.Sprintf("input %d must be a constant, or follow from shapes", int(d))
}

// opset returns the version of the node's operator set, the newest where the
// model does not say.
func (c *call) opset() int64 {
	d := c.node.domain
	if d == "ai.onnx" {
		d = ""
	}
	for _, sets := range []map[string]int64{c.node.opsets, c.scope.opsets} {
		if v := sets[d]; v > 0 {
			return v
		}
	}
	return math.MaxInt32
}

// has reports whether input i is there.
func (c *call) has(i int) bool { return i < len(c.in) && c.in[i] != nil }

// input returns input i.
func (c *call) input(i int) *tensor {
	if !c.has(i) {
		c.fail("input %d is missing", i)
	}
	return c.in[i]
}

// elem returns the element type of input i.
func (c *call) elem(i int) elem { return c.input(i).elem }

// shape returns the shape of input i.
func (c *call) shape(i int) graph.Shape {
	t := c.input(i)
	if t.shape == nil {
		c.fail("input %d has no shape%s", i, t.why)
	}
	return t.shape
}

// ranked returns the shape of input i, which must have at least low and at most
// high dimensions.
func (c *call) ranked(i, low, high int) graph.Shape {
	s := c.shape(i)
	if len(s) < low || len(s) > high {
		want := fmt.Sprint(low)
		if high >= maxRank {
			want = fmt.Sprintf("at least %d", low)
		} else if low != high {
			want = fmt.Sprintf("%d to %d", low, high)
		}
		c.fail("input %d is %v, want %s dimensions", i, s, want)
	}
	return s
}

// known returns the elements of input i if they are known and whole.
func (c *call) known(i int) ([]int64, bool) {
	if !c.has(i) || c.in[i].value == nil {
		return nil, false
	}
	return c.in[i].value.ints()
}

// ints returns the elements of input i, which shapes depend on.
func (c *call) ints(i int) []int64 {
	list, ok := c.known(i)
	if !ok {
		c.notConstant(i)
	}
	return list
}

// scalar returns the one element of input i.
func (c *call) scalar(i int) int64 {
	list := c.ints(i)
	if len(list) != 1 {
		c.fail("input %d has %d elements, want one", i, len(list))
	}
	return list[0]
}

// list returns what newer versions of an operator take as input i and older ones
// as an attribute; nil where neither is there.
func (c *call) list(i int, attr string) []int64 {
	if c.has(i) {
		return c.ints(i)
	}
	return c.node.ints(attr)
}

// perAxis returns the attribute attr, one number for each of n axes.
func (c *call) perAxis(attr string, n int, otherwise int64) []int64 {
	list := c.node.ints(attr)
	if len(list) == 0 {
		list = make([]int64, n)
		for i := range list {
			list[i] = otherwise
		}
	}
	if len(list) != n {
		c.fail("%s has %d numbers, want %d", attr, len(list), n)
	}
	for _, x := range list {
		if x < -maxDim || x > maxDim {
			c.fail("%s holds %d", attr, x)
		}
	}
	return list
}

// axis brings axis a of rank dimensions to 0..rank-1.
func (c *call) axis(a int64, rank int) int {
	if a < -int64(rank) || a >= int64(rank) {
		c.fail("axis %d of %s", a, words.Count(rank, "dimension", "dimensions"))
	}
	if a < 0 {
		a += int64(rank)
	}
	return int(a)
}

// axes marks the axes listed among rank dimensions.
func (c *call) axes(list []int64, rank int) []bool {
	marked := make([]bool, rank)
	for _, a := range list {
		k := c.axis(a, rank)
		if marked[k] {
			c.fail("axis %d is named twice", a)
		}
		marked[k] = true
	}
	return marked
}

// mul multiplies dimensions.
func (c *call) mul(a, b int64) int64 {
	if a < 0 || b < 0 || a != 0 && b > maxDim/a {
		c.fail("dimension %d times %d", a, b)
	}
	return a * b
}

// product multiplies a list of dimensions.
func (c *call) product(dims []int64) int64 {
	n := int64(1)
	for _, d := range dims {
		n = c.mul(n, d)
	}
	return n
}

// broadcast returns the shape that the given ones extend to (NumPy's rule).
func (c *call) broadcast(shapes ...graph.Shape) graph.Shape {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	out := make(graph.Shape, rank)
	for k := range out {
		out[k] = 1
		for _, s := range shapes {
			if i := k - (rank - len(s)); i >= 0 && s[i] != 1 {
				if out[k] != 1 && out[k] != s[i] {
					c.fail("shapes %v do not fit each other", shapes)
				}
				out[k] = s[i]
			}
		}
	}
	return out
}

// set makes output k a tensor of type e and shape s; outputs that the node does
// not have are ignored. It keeps s.
func (c *call) set(k int, e elem, s graph.Shape) {
	if len(s) > maxRank {
		c.fail("output %d has %d dimensions", k, len(s))
	}
	for _, d := range s {
		if d < 0 || d > maxDim {
			c.fail("output %d would be %v", k, s)
		}
	}
	if _, err := s.Elements(); err != nil {
		c.fail("output %d: %w", k, err)
	}
	if s == nil {
		s = graph.Shape{}
	}
	if k < len(c.out) {
		c.out[k].elem, c.out[k].shape = e, s
	}
}

// multiply adds a product to the op's cost; one with an empty dimension costs
// nothing.
func (c *call) multiply(batch, m, n, k int64) {
	if batch > 0 && m > 0 && n > 0 && k > 0 {
		c.products = append(c.products, graph.GEMM{Batch: batch, M: m, N: n, K: k})
	}
	if c.flops < 0 {
		c.flops = 0
	}
}

// addBias adds an operation for each element of out where input slot is there.
func (c *call) addBias(slot int, out graph.Shape) {
	if c.has(slot) {
		c.flops = max(c.flops, 0) + flops(elementsOf(out))
	}
}

// gemm returns the product that stands for all products of the op: the largest, grown
// to the FLOPs of all.
func gemm(products []graph.GEMM) (g graph.GEMM, total units.FLOPs) {
	for _, p := range products {
		total += p.FLOPs()
		if p.FLOPs() > g.FLOPs() {
			g = p
		}
	}
	if one := g.FLOPs(); total > one {
		g = grow(g, float64(total/one))
	}
	return g, max(total, g.FLOPs())
}

// grow returns g with r times its FLOPs, r > 1, less what rounding down takes: whatever
// the product lacks is charged to the vector units, which are many times slower. More
// batches are nearest to what several products are, but of a few batches rounding takes
// up to half: then it is more rows, or where these are few more columns, which stay
// multiples of 16 that matrix units load well.
func grow(g graph.GEMM, r float64) graph.GEMM {
	const most = 1. / 64 // that rounding may take
	longest := &g.Batch
	for _, n := range []*int64{&g.Batch, &g.M, &g.N} {
		step := 1.
		if n == &g.N && g.N%16 == 0 {
			step = 16
		}
		x := float64(*n) * r
		down := math.Floor(x/step*(1+1e-12)) * step
		if down >= x*(1-most) && down < 1<<62 {
			*n = int64(down)
			return g
		}
		if *n > *longest {
			longest = n
		}
	}
	if x := math.Floor(float64(*longest) * r); x < 1<<62 {
		*longest = int64(x)
	}
	return g
}

// with returns s with dimension k changed to d.
func with(s graph.Shape, k int, d int64) graph.Shape {
	out := append(graph.Shape{}, s...)
	out[k] = d
	return out
}

// join returns one shape made of several lists of dimensions.
func join(parts ...[]int64) graph.Shape {
	out := graph.Shape{}
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}
