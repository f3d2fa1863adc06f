package unit

import (
	"fmt"

	"placer/graph"
)

// builder makes small graphs for the tests.
type builder struct {
	*graph.Builder
	n     int
	group int32
	phase graph.Phase
	of    graph.OpID // forward op of the backward ops being added
}

func newBuilder() *builder {
	return &builder{Builder: graph.NewBuilder("test"), of: graph.None}
}

func (b *builder) op(kind graph.Kind, bytes int, in ...graph.TensorID) graph.TensorID {
	b.n++
	o := graph.Op{Name: fmt.Sprintf("%s_%d", kind, b.n), Kind: kind, Phase: b.phase, Bytes: graph.Auto, Forward: graph.None}
	if b.phase == graph.Backward {
		o.Forward = b.of
	}
	return b.Output(b.Op(o, in, graph.Tensor{Shape: graph.Shape{int64(bytes) / 4}, Bytes: graph.Auto}), 0)
}

// variable adds a variable, alone in a new co-location group, and its read.
func (b *builder) variable(bytes int) (v, read graph.TensorID) {
	v = b.op("VariableV2", bytes)
	b.group++
	b.at(v).Group = b.group
	b.at(v).Resident = 4
	read = b.op("Identity", bytes, v)
	return v, read
}

func (b *builder) at(t graph.TensorID) *graph.Op { return b.At(b.TensorAt(t).Producer) }

func (b *builder) update(v, grad graph.TensorID) {
	b.phase = graph.Update
	u := b.op("ApplyGradientDescent", 0, v, grad)
	b.at(u).Group = b.at(v).Group
	b.phase = graph.Forward
}

// step is what the backward pass of a recurrent cell needs.
type step struct {
	concat, product, gate, state graph.TensorID
}

// recurrent builds a network of layers with one product, one gate and one sum per
// step, and its training step if train is set. It returns the ids of the weights
// and of every step's product, [layers][steps].
func recurrent(layers, steps int, train bool) (g *graph.Graph, weights []graph.OpID, products [][]graph.OpID) {
	b := newBuilder()
	const h, w = 4 << 10, 4 << 20
	x := make([]graph.TensorID, steps)
	for t := range x {
		x[t] = b.op("Placeholder", h)
	}
	vars, reads := make([]graph.TensorID, layers), make([]graph.TensorID, layers)
	cells := make([][]step, layers)
	for l := range layers {
		vars[l], reads[l] = b.variable(w)
		state := b.op("Const", h)
		for t := range steps {
			var s step
			s.concat = b.op("ConcatV2", 2*h, x[t], state)
			s.product = b.op("MatMul", h, s.concat, reads[l])
			s.gate = b.op("Sigmoid", h, s.product)
			s.state = b.op("Add", h, s.gate, state)
			state, x[t] = s.state, s.state
			cells[l] = append(cells[l], s)
		}
	}
	loss := b.op("AddN", h, x...)
	if train {
		b.backward(loss, cells, vars, reads)
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	byName := map[string]graph.OpID{}
	for i := range g.NumOps() {
		byName[g.Op(graph.OpID(i)).Name] = graph.OpID(i)
	}
	for l := range layers {
		weights = append(weights, byName[b.at(vars[l]).Name])
		var ps []graph.OpID
		for _, s := range cells[l] {
			ps = append(ps, byName[b.at(s.product).Name])
		}
		products = append(products, ps)
	}
	return g, weights, products
}

func (b *builder) backward(loss graph.TensorID, cells [][]step, vars, reads []graph.TensorID) {
	const h, w = 4 << 10, 4 << 20
	steps := len(cells[0])
	b.phase = graph.Backward
	b.of = b.TensorAt(loss).Producer
	top := b.op("Fill", h, loss)
	above := make([]graph.TensorID, steps)
	for t := range above {
		above[t] = top
	}
	for l := len(cells) - 1; l >= 0; l-- {
		var dw []graph.TensorID
		later := graph.TensorID(-1)
		for t := steps - 1; t >= 0; t-- {
			s := cells[l][t]
			b.phase = graph.Backward
			d := above[t]
			b.of = b.TensorAt(s.state).Producer
			if later >= 0 {
				d = b.op("AddN", h, above[t], later)
			}
			b.of = b.TensorAt(s.gate).Producer
			gate := b.op("SigmoidGrad", h, s.gate, d)
			b.of = b.TensorAt(s.product).Producer
			dx := b.op("MatMul", 2*h, gate, reads[l])
			dw = append(dw, b.op("MatMul", w, s.concat, gate))
			b.of = b.TensorAt(s.concat).Producer
			above[t] = b.op("Slice", h, dx)
			later = b.op("Slice", h, dx)
		}
		b.of = b.TensorAt(reads[l]).Producer
		b.phase = graph.Backward
		b.update(vars[l], b.op("AddN", w, dw...))
	}
}

// ones gives every op one microsecond, products ten.
func ones(g *graph.Graph) []float64 {
	s := make([]float64, g.NumOps())
	for i := range s {
		s[i] = 1e-6
		if g.Op(graph.OpID(i)).Kind.Class() == graph.ClassGEMM {
			s[i] = 1e-5
		}
	}
	return s
}
