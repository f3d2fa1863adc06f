package remat_test

import (
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/remat"
	"placer/workloads"
)

const decoder = "llama:layers=4,hidden=256,heads=4,kv_heads=4,ffn=512,seq=64,vocab=1000"

func build(t *testing.T, name string) (*graph.Graph, *remat.Layers) {
	t.Helper()
	g, err := workloads.Build(name)
	if err != nil {
		t.Fatal(err)
	}
	return g, remat.Find(g)
}

func able(l *remat.Layers) (ks []int32) {
	for k := int32(1); k <= l.Last(); k++ {
		if l.Can(k) {
			ks = append(ks, k)
		}
	}
	return ks
}

// TestDerive: whatever changes, the ops of the given graph are there with what they were,
// all they read is what they read before, another time or by way of the host, and no
// gradient of a changed layer reads what the layer saved.
func TestDerive(t *testing.T) {
	for _, name := range []string{decoder, "gnmt:layers=3,source=4,target=4,hidden=64,vocab=500", "trfxl:layers=3,vocab=500", "vit:layers=3", "wavenet:stacks=1,layers_per_stack=4,batch=2,length=64", "inception:batch=2"} {
		t.Run(name, func(t *testing.T) {
			g, l := build(t, name)
			all := able(l)
			if len(all) == 0 {
				t.Fatal("no layer can change")
			}
			half := len(all) / 2
			for _, c := range []remat.Changes{{}, {Recompute: all}, {Offload: all}, {Recompute: all[:half], Offload: all[half:]}} {
				d, err := l.Derive(c)
				if err != nil {
					t.Fatal(err)
				}
				if c.None() != (d.Graph.Hash() == g.Hash()) {
					t.Errorf("changes %v, hash %.8s of %.8s", c, d.Graph.Hash(), g.Hash())
				}
				checkDerived(t, g, l, c, d)
				again, err := remat.Find(g).Derive(c)
				if err != nil || again.Graph.Hash() != d.Graph.Hash() {
					t.Errorf("derived twice: %v, %.8s and %.8s", err, d.Graph.Hash(), again.Graph.Hash())
				}
			}
		})
	}
}

func checkDerived(t *testing.T, g *graph.Graph, l *remat.Layers, c remat.Changes, d *remat.Derived) {
	t.Helper()
	// root is the op and slot of the given graph whose value a tensor has.
	type value struct {
		op   graph.OpID
		slot graph.TensorID
	}
	given := func(u graph.TensorID) value {
		first, _ := g.Outputs(g.Tensor(u).Producer)
		return value{g.Tensor(u).Producer, u - first}
	}
	var of func(u graph.TensorID) value
	of = func(u graph.TensorID) value {
		p := d.Graph.Tensor(u).Producer
		if d.Host[p] {
			return of(d.Graph.Inputs(p)[0])
		}
		first, _ := d.Graph.Outputs(p)
		return value{d.Of[p], u - first}
	}
	found := make([]bool, g.NumOps())
	moved := 0
	for i := range graph.OpID(d.Graph.NumOps()) {
		o, was := d.Graph.Op(i), g.Op(d.Of[i])
		if d.Host[i] {
			if o.Kind != "Identity" || len(d.Graph.Inputs(i)) != 1 {
				t.Fatalf("host op %s is no identity", o.Name)
			}
			continue
		}
		if o.Kind != was.Kind || o.FLOPs != was.FLOPs || o.GEMM != was.GEMM || o.Bytes != was.Bytes || len(d.Graph.Inputs(i)) != len(g.Inputs(d.Of[i])) {
			t.Fatalf("%s is not the op %s", o.Name, was.Name)
		}
		for k, u := range d.Graph.Inputs(i) {
			if of(u) != given(g.Inputs(d.Of[i])[k]) {
				t.Fatalf("input %d of %s has another value than that of %s", k, o.Name, was.Name)
			}
		}
		again := strings.HasPrefix(o.Name, "again/")
		if again {
			if o.Resident > 0 || o.Phase != graph.Backward || !slices.Contains(c.Recompute, l.Of[d.Of[i]]) {
				t.Fatalf("%s is computed again", o.Name)
			}
			continue
		}
		if found[d.Of[i]] || o.Name != was.Name {
			t.Fatalf("%s is there twice", o.Name)
		}
		found[d.Of[i]] = true
		k := l.Of[d.Of[i]]
		if was.Phase != graph.Backward || !slices.Contains(c.Recompute, k) && !slices.Contains(c.Offload, k) {
			continue
		}
		for _, u := range d.Graph.Inputs(i) {
			p := d.Graph.Tensor(u).Producer
			first, _ := g.Outputs(d.Of[p])
			saved := slices.Contains(l.Saved[k], first+of(u).slot) && l.Of[d.Of[p]] == k
			fresh := strings.HasPrefix(d.Graph.Op(p).Name, "again/") || d.Host[p]
			if fresh {
				moved++
			}
			if saved && !fresh && slices.Contains(c.Recompute, k) {
				t.Fatalf("%s still reads %s", o.Name, d.Graph.Op(p).Name)
			}
		}
	}
	if slices.Contains(found, false) {
		t.Error("an op of the given graph is gone")
	}
	if c.None() != (moved == 0) {
		t.Errorf("changes %v, %d reads moved", c, moved)
	}
}

// TestLaterIsLater: what is computed again or fetched waits for a gradient.
func TestLaterIsLater(t *testing.T) {
	_, l := build(t, decoder)
	for _, c := range []remat.Changes{{Recompute: able(l)}, {Offload: able(l)}} {
		d, err := l.Derive(c)
		if err != nil {
			t.Fatal(err)
		}
		after := make([]bool, d.Graph.NumOps()) // of the first gradient of all
		for i := range graph.OpID(d.Graph.NumOps()) {
			for p := range d.Graph.Predecessors(i) {
				after[i] = after[i] || after[p] || strings.Contains(d.Graph.Op(p).Name, "CrossEntropy_grad") || strings.HasSuffix(d.Graph.Op(p).Name, "Cast_grad/Cast")
			}
			n := d.Graph.Op(i).Name
			if (strings.HasPrefix(n, "again/") || strings.HasPrefix(n, "fetch/")) && !after[i] {
				t.Errorf("%s may run before any gradient", n)
			}
		}
	}
}

func TestDeriveErrors(t *testing.T) {
	_, l := build(t, decoder)
	for _, c := range []struct {
		remat.Changes
		want string
	}{
		{remat.Changes{Recompute: []int32{9}}, "layer 9"},
		{remat.Changes{Recompute: []int32{1}, Offload: []int32{1}}, "twice"},
		{remat.Changes{Offload: []int32{0}}, "layer 0"},
		{remat.Changes{Offload: []int32{4}}, "layer 4"}, // the loss follows it at once
	} {
		if _, err := l.Derive(c.Changes); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", c.Changes, err, c.want)
		}
	}
	inference, m := build(t, "llama:optimizer=none,layers=2,hidden=256,heads=4,kv_heads=4,ffn=512,seq=64,vocab=1000")
	if ks := able(m); len(ks) > 0 {
		t.Errorf("layers %v of %s, which is not trained, can change", ks, inference.Name())
	}
}

// TestStretches: a graph without layers has some all the same.
func TestStretches(t *testing.T) {
	g, _ := build(t, decoder)
	b := graph.NewBuilder("plain")
	for i := range graph.OpID(g.NumOps()) {
		o := *g.Op(i)
		o.Layer = 0
		first, end := g.Outputs(i)
		var out []graph.Tensor
		for u := first; u < end; u++ {
			out = append(out, *g.Tensor(u))
		}
		b.Op(o, g.Inputs(i), out...)
		for _, p := range g.Control(i) {
			b.Control(p, i)
		}
	}
	plain, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	l := remat.Find(plain)
	ks := able(l)
	if len(ks) < 4 {
		t.Fatalf("%d of %d stretches can change", len(ks), l.Last())
	}
	d, err := l.Derive(remat.Changes{Recompute: ks})
	if err != nil {
		t.Fatal(err)
	}
	checkDerived(t, plain, l, remat.Changes{Recompute: ks}, d)
}

// TestLayersComeOneByOne: all that is computed again of a layer and all its gradients, those of
// weights too, come before what is computed again of the layer before it: a layer's activations
// do not wait for the others.
func TestLayersComeOneByOne(t *testing.T) {
	_, l := build(t, decoder)
	d, err := l.Derive(remat.Changes{Recompute: able(l)})
	if err != nil {
		t.Fatal(err)
	}
	last, firstAgain := map[int32]graph.OpID{}, map[int32]graph.OpID{}
	for i := range graph.OpID(d.Graph.NumOps()) {
		o := d.Graph.Op(i)
		if o.Phase != graph.Backward || o.GEMM.IsZero() {
			continue
		}
		last[o.Layer] = i
		if _, ok := firstAgain[o.Layer]; !ok && strings.HasPrefix(o.Name, "again/") {
			firstAgain[o.Layer] = i
		}
	}
	for layer, i := range firstAgain {
		if after, ok := last[layer+1]; ok && after > i {
			t.Errorf("layer %d is computed again before %s", layer, d.Graph.Op(after).Name)
		}
	}
	if len(firstAgain) != 3 { // the last layer's gradients come at once
		t.Errorf("products of %d layers are computed again, want 3", len(firstAgain))
	}
}
