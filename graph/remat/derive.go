package remat

import (
	"fmt"
	"slices"

	"placer/graph"
)

// Changes say which layers give up their activations, and how; ascending, none in
// both lists.
type Changes struct {
	Recompute []int32
	Offload   []int32
}

// None reports whether nothing changes.
func (c Changes) None() bool { return len(c.Recompute)+len(c.Offload) == 0 }

// Derived is a graph with changes.
type Derived struct {
	Graph *graph.Graph
	// Of is the op of the given graph that each op is, is computed again, or has the
	// output of which it moves, [N].
	Of []graph.OpID
	// Host says which ops belong on the host: they hold activations there, [N].
	Host []bool
}

// smallest is the share of a layer's largest saved tensor below which a tensor is not
// worth a copy: it stays.
const smallest = 1.0 / 64

// Derive returns g with changes c. The error names the first layer that cannot change
// so.
//
// A layer that is computed again has a second op for each that its saved tensors need
// and that is not of another layer; its gradients read the outputs of these. They wait
// for the gradients that come to the layer. What other layers made stays from the
// forward pass, and is what they start from.
//
// A layer that is offloaded has two more ops for each saved tensor but the small ones,
// both on the host: one that keeps it, and one that gives it back when gradients come
// to the layer behind, so that it is under way while that one's gradients run.
func (l *Layers) Derive(c Changes) (*Derived, error) {
	if err := l.check(c); err != nil {
		return nil, err
	}
	d := newDeriver(l.g)
	// The last layer first, as gradients come to it: of ops that are ready the first added comes
	// first, and what only a gradient of a weight reads would else wait for all other layers.
	for _, k := range slices.Backward(c.Recompute) {
		d.recompute(l.region(k))
	}
	for _, k := range c.Offload {
		d.offload(l, k)
	}
	out, err := d.derived()
	if err != nil {
		return nil, fmt.Errorf("%w (a layer's gradients cannot wait for what they would: recompute %v, offload %v)", err, c.Recompute, c.Offload)
	}
	return out, nil
}

func (l *Layers) check(c Changes) error {
	seen := map[int32]bool{}
	for _, k := range slices.Concat(c.Recompute, c.Offload) {
		if seen[k] {
			return fmt.Errorf("layer %d of graph %s is named twice", k, l.g.Name())
		}
		seen[k] = true
		if !l.Can(k) {
			return fmt.Errorf("layer %d of graph %s, which has %d, holds no activations for gradients that come later", k, l.g.Name(), l.Last())
		}
	}
	return nil
}

// deriver adds to a copy of the graph, whose ops and tensors keep their ids.
type deriver struct {
	g    *graph.Graph
	b    *graph.Builder
	of   []graph.OpID
	host []bool
}

func newDeriver(g *graph.Graph) *deriver {
	d := &deriver{g: g, b: graph.NewBuilder(g.Name())}
	for i := range graph.OpID(g.NumOps()) {
		first, end := g.Outputs(i)
		var out []graph.Tensor
		for t := first; t < end; t++ {
			out = append(out, *g.Tensor(t))
		}
		d.add(i, *g.Op(i), slices.Clone(g.Inputs(i)), out...)
		for _, p := range g.Control(i) {
			d.b.Control(p, i)
		}
	}
	return d
}

// derived builds the graph.
func (d *deriver) derived() (*Derived, error) {
	g, err := d.b.Build()
	if err != nil {
		return nil, err
	}
	out := &Derived{Graph: g}
	for _, i := range d.b.Order() {
		out.Of, out.Host = append(out.Of, d.of[i]), append(out.Host, d.host[i])
	}
	return out, nil
}

// region is a part of the forward pass that gives up what it saves.
type region struct {
	inside func(graph.OpID) bool // computed again where saved tensors need it
	saved  []graph.TensorID
	reads  func(graph.OpID) bool // gradients that read the saved tensors from then on
	gates  []graph.OpID          // end before anything is computed again
}

// region is layer k.
func (l *Layers) region(k int32) region {
	return region{
		inside: func(i graph.OpID) bool {
			return l.Of[i] == k && l.g.Op(i).Phase == graph.Forward && !holds(l.g, i)
		},
		saved: l.Saved[k],
		reads: func(v graph.OpID) bool { return l.Of[v] == k && l.g.Op(v).Phase == graph.Backward },
		gates: l.gates[k],
	}
}

func (d *deriver) add(of graph.OpID, o graph.Op, in []graph.TensorID, out ...graph.Tensor) graph.OpID {
	d.of, d.host = append(d.of, of), append(d.host, false)
	return d.b.Op(o, in, out...)
}

// redirect has the gradients of r read to in place of t.
func (d *deriver) redirect(r region, t, to graph.TensorID) {
	for _, v := range d.g.Consumers(t) {
		if !r.reads(v) {
			continue
		}
		in := slices.Clone(d.b.InputsAt(v))
		for j := range in {
			if in[j] == t {
				in[j] = to
			}
		}
		d.b.Replace(v, in)
	}
}

// recompute computes what r saves again.
func (d *deriver) recompute(r region) {
	again := map[graph.OpID]graph.OpID{}
	var compute func(i graph.OpID) graph.OpID
	compute = func(i graph.OpID) graph.OpID {
		if id, ok := again[i]; ok {
			return id
		}
		in := slices.Clone(d.g.Inputs(i))
		start := true
		for j, t := range in {
			p := d.g.Tensor(t).Producer
			if r.inside(p) && !d.g.Tensor(t).Resident {
				first, _ := d.g.Outputs(p)
				in[j] = d.b.Output(compute(p), int(t-first))
				start = false
			}
		}
		o := *d.g.Op(i)
		o.Name, o.Phase, o.Forward = "again/"+o.Name, graph.Backward, i
		first, end := d.g.Outputs(i)
		var out []graph.Tensor
		for t := first; t < end; t++ {
			out = append(out, *d.g.Tensor(t))
		}
		id := d.add(i, o, in, out...)
		again[i] = id
		if start {
			for _, gate := range r.gates {
				d.b.Control(gate, id)
			}
		}
		return id
	}
	for _, t := range r.saved {
		p := d.g.Tensor(t).Producer
		first, _ := d.g.Outputs(p)
		d.redirect(r, t, d.b.Output(compute(p), int(t-first)))
	}
}

// Offloaded returns the saved tensors of layer k that are worth a copy.
func (l *Layers) Offloaded(k int32) (out []graph.TensorID) {
	largest := 0.0
	for _, t := range l.Saved[k] {
		largest = max(largest, float64(l.g.Tensor(t).Bytes))
	}
	for _, t := range l.Saved[k] {
		if float64(l.g.Tensor(t).Bytes) >= smallest*largest {
			out = append(out, t)
		}
	}
	return out
}

// offload keeps what layer k saves on the host.
func (d *deriver) offload(l *Layers, k int32) {
	gates := l.gates[k]
	if l.Can(k + 1) {
		gates = l.gates[k+1]
	}
	r := l.region(k)
	for _, t := range l.Offloaded(k) {
		p := d.g.Tensor(t).Producer
		x := *d.g.Tensor(t)
		name := fmt.Sprintf("%s:%d", d.g.Op(p).Name, t-first(d.g, p))
		o := graph.Op{Name: "keep/" + name, Kind: "Identity", Phase: graph.Forward, DType: x.DType, Layer: k, Module: d.g.Op(p).Module, Forward: graph.None}
		keep := d.add(p, o, []graph.TensorID{t}, x)
		o.Name, o.Phase = "fetch/"+name, graph.Backward
		fetch := d.add(p, o, []graph.TensorID{d.b.Output(keep, 0)}, x)
		for _, gate := range gates {
			d.b.Control(gate, fetch)
		}
		d.host[keep], d.host[fetch] = true, true
		d.redirect(r, t, d.b.Output(fetch, 0))
	}
}

func first(g *graph.Graph, i graph.OpID) graph.TensorID {
	t, _ := g.Outputs(i)
	return t
}

// Place returns the placement of the ops of d, [N'], under a placement of the given
// graph's ops, [N], with what belongs on the host there.
func (d *Derived) Place(device []uint8, host uint8) []uint8 {
	out := make([]uint8, len(d.Of))
	for i, of := range d.Of {
		if out[i] = device[of]; d.Host[i] {
			out[i] = host
		}
	}
	return out
}
