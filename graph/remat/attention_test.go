package remat_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/remat"
)

// TestAttention: of each layer the scores, what makes probabilities of them and the views of
// these are computed again, nothing else; gradients read these, and they wait for a gradient
// of their own layer or a later one.
func TestAttention(t *testing.T) {
	for _, c := range []struct {
		name  string
		cores int
		kinds []string // of a core, in order
	}{
		{"gpt:layers=3,hidden=64,heads=4,ffn=128,seq=16,vocab=100,attention=products", 3, []string{"BatchMatMul", "Mul", "Add", "Softmax"}},
		{"vit:layers=2,hidden=64,heads=4,ffn=128,size=64,classes=10,attention=products", 2, []string{"BatchMatMul", "Mul", "Softmax"}},
		{decoder + ",attention=products", 4, []string{"BatchMatMul", "Reshape", "Mul", "Add", "Softmax", "Reshape"}},
		{"transformer:encoder=1,decoder=2,hidden=64,heads=4,ffn=128,attention=products", 5, nil},
	} {
		g, _ := build(t, c.name)
		d, err := remat.Attention(g)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []string
		late := make([]bool, d.Graph.NumOps()) // follows a gradient
		for i := range graph.OpID(d.Graph.NumOps()) {
			o, of := d.Graph.Op(i), d.Of[i]
			late[i] = o.Phase == graph.Backward && !strings.HasPrefix(o.Name, "again/") && len(d.Graph.Inputs(i)) > 0
			for p := range d.Graph.Predecessors(i) {
				late[i] = late[i] || late[p]
			}
			if d.Host[i] || o.Kind != g.Op(of).Kind || o.FLOPs != g.Op(of).FLOPs {
				t.Fatalf("%s is not the op %s", o.Name, g.Op(of).Name)
			}
			if strings.HasPrefix(o.Name, "again/") {
				kinds = append(kinds, string(o.Kind))
				if !late[i] {
					t.Errorf("%s may run before any gradient", o.Name)
				}
			}
			for k, u := range d.Graph.Inputs(i) {
				p := d.Graph.Tensor(u).Producer
				if d.Of[p] != g.Tensor(g.Inputs(of)[k]).Producer {
					t.Fatalf("%s reads %s", o.Name, d.Graph.Op(p).Name)
				}
				if o.Phase == graph.Backward && d.Graph.Op(p).Kind == "Softmax" && d.Graph.Op(p).Phase == graph.Forward {
					t.Errorf("%s reads probabilities that are kept", o.Name)
				}
			}
		}
		if got := strings.Count(strings.Join(kinds, " "), "Softmax"); got != c.cores {
			t.Errorf("%s: %d cores, want %d", c.name, got, c.cores)
		}
		if c.kinds == nil {
			continue
		}
		if want := slices.Repeat(c.kinds, c.cores); !slices.Equal(kinds, want) {
			t.Errorf("%s: %v are computed again, want %v", c.name, kinds, want)
		}
	}
}

// TestAttentionMasks: dropout's masks, which are random numbers that the core alone reads, are
// computed again with it; a mask that another op reads too stays.
func TestAttentionMasks(t *testing.T) {
	for _, shared := range []bool{false, true} {
		b := graph.NewBuilder("dropout")
		x := graph.Tensor{DType: graph.F32, Shape: graph.Shape{2, 4, 4}, Bytes: graph.Auto}
		op := func(name string, kind graph.Kind, phase graph.Phase, in ...graph.TensorID) graph.TensorID {
			o := graph.Op{Name: name, Kind: kind, Phase: phase, Layer: 1, Forward: graph.None}
			if kind == "BatchMatMul" {
				o.GEMM = graph.GEMM{Batch: 2, M: 4, N: 4, K: 4}
			}
			return b.Output(b.Op(o, in, x), 0)
		}
		q := op("q", "Placeholder", graph.Forward)
		scores := op("scores", "BatchMatMul", graph.Forward, q, q)
		mask := op("floor", "Floor", graph.Forward, op("random", "RandomUniform", graph.Forward))
		dropped := op("dropped", "Mul", graph.Forward, op("softmax", "Softmax", graph.Forward, scores), mask)
		y := op("context", "BatchMatMul", graph.Forward, dropped, q)
		if shared {
			op("other", "Add", graph.Forward, mask, q)
		}
		dy := op("dy", "Neg", graph.Backward, y)
		op("dv", "BatchMatMul", graph.Backward, dropped, dy)
		op("dp", "Mul", graph.Backward, op("ddropped", "BatchMatMul", graph.Backward, dy, q), mask)
		g, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		d, err := remat.Attention(g)
		if err != nil {
			t.Fatal(err)
		}
		again := ""
		for i := range graph.OpID(d.Graph.NumOps()) {
			if n, ok := strings.CutPrefix(d.Graph.Op(i).Name, "again/"); ok {
				again += n + " "
			}
		}
		if got, want := strings.Contains(again, "random"), !shared; got != want || !strings.Contains(again, "softmax") {
			t.Errorf("computed again: %s, the mask among it: %v, want %v", again, got, want)
		}
	}
}

// TestNoAttention: where no two activations are multiplied there is no core, nor where attention is one kernel,
// which keeps no scores.
func TestNoAttention(t *testing.T) {
	for _, name := range []string{"inception:batch=2", "rnnlm:layers=2,unroll=4,hidden=64,vocab=500", decoder, "gpt:layers=2,hidden=64,heads=4,ffn=128,seq=16,vocab=100,attention=products,optimizer=none"} {
		g, _ := build(t, name)
		if _, err := remat.Attention(g); !errors.Is(err, remat.ErrNoAttention) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
