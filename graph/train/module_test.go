package train_test

import (
	"testing"

	"placer/graph"
	"placer/graph/train"
)

// Backward ops have the module of the op that they differentiate, updates and slots
// that of their variable.
func TestDeriveKeepsModules(t *testing.T) {
	n := newNet("modules")
	x := n.op("Placeholder", nil, f32(4, 3))
	w := n.variable("w", 3, 2)
	y := n.op("MatMul", []graph.TensorID{x, w}, f32(4, 2))
	n.op("Sum", []graph.TensorID{y}, f32())
	for i := range graph.OpID(n.NumOps()) {
		switch o := n.At(i); o.Kind {
		case "VariableV2", "Identity":
			o.Module = "head.weight"
		case "MatMul":
			o.Module = "head"
		}
	}
	g, err := n.Build()
	if err != nil {
		t.Fatal(err)
	}
	how := train.Default()
	how.Optimizer = train.Momentum
	d, err := train.Derive(g, how)
	if err != nil {
		t.Fatal(err)
	}
	products, updates, slots := 0, 0, 0
	for i := range graph.OpID(d.NumOps()) {
		o := d.Op(i)
		want := o.Module
		switch {
		case o.Phase == graph.Backward:
			want = d.Op(o.Forward).Module
			if o.Kind == "MatMul" && want == "head" {
				products++
			}
		case o.Kind == "ApplyMomentum":
			want = "head.weight"
			updates++
		case o.Kind == "VariableV2" && o.Phase == graph.Update:
			want = "head.weight"
			slots++
		}
		if o.Module != want {
			t.Errorf("op %s: module %q, want %q", o.Name, o.Module, want)
		}
	}
	if products == 0 || updates != 1 || slots != 1 {
		t.Errorf("%d backward products, %d updates, %d slots", products, updates, slots)
	}
}
