package workloads

import (
	"fmt"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/fuse"
)

// attending are families in a small size, with what a layer's attention has: B samples, H heads of
// D columns, S tokens in either direction.
var attending = []struct {
	name          string
	layers        int64
	b, h, s, d    int64
	causal, halfs bool
}{
	{"llama:layers=3,hidden=64,heads=4,kv_heads=4,ffn=128,vocab=100,seq=32,batch=2", 3, 2, 4, 32, 16, true, true},
	{"llama:layers=3,hidden=64,heads=4,kv_heads=2,ffn=128,vocab=100,seq=32,batch=2", 3, 2, 4, 32, 16, true, true},
	{"moe:layers=2,hidden=64,heads=4,kv_heads=2,ffn=128,vocab=100,seq=32,batch=2,experts=2", 2, 2, 4, 32, 16, true, true},
	{"gpt:layers=2,hidden=64,heads=4,ffn=128,vocab=100,seq=32,batch=2", 2, 2, 4, 32, 16, true, true},
	{"vit:layers=2,hidden=64,heads=2,ffn=128,size=64,patch=16,classes=10,batch=4", 2, 4, 2, 17, 32, false, true},
	{"transformer:encoder=2,decoder=1,hidden=64,heads=4,ffn=128,source=24,target=24,vocab=100,batch=2", 4, 2, 4, 24, 16, false, false},
}

// saved is what the backward pass reads of the forward pass and is not there in any case.
func saved(g *graph.Graph) (bytes int64) {
	view := fuse.Views(g)
	seen := map[graph.TensorID]bool{}
	for i := range graph.OpID(g.NumOps()) {
		if g.Op(i).Phase != graph.Backward {
			continue
		}
		for _, t := range g.Inputs(i) {
			for view[t] >= 0 {
				t = view[t]
			}
			if x := g.Tensor(t); !seen[t] && !x.Resident && g.Op(x.Producer).Phase == graph.Forward && x.Producer != i {
				seen[t] = true
				bytes += int64(x.Bytes)
			}
		}
	}
	return bytes
}

// TestAttentionInOneKernel: beside products and a softmax, attention in one kernel has the
// operations of the scores that its queries see and 2.5 times as many backward, no tensor of
// scores, and a step saves less for the backward pass by exactly these, but for a number a row.
func TestAttentionInOneKernel(t *testing.T) {
	for _, c := range attending {
		t.Run(c.name, func(t *testing.T) {
			apart, one := built(t, c.name+",attention=products"), built(t, c.name+",attention=kernel")
			seen := c.s
			if c.causal {
				seen = c.s/2 + 1
			}
			pair := 4 * c.layers * c.b * c.h * c.s * c.d // operations of a key
			f, b := products(apart)
			if gotF, gotB := products(one); gotF != f-pair*(c.s-seen) || gotB != b-2*pair*c.s+pair*seen*5/2 {
				t.Errorf("%d operations forward and %d backward, products and a softmax %d and %d, of them %d in attention", gotF, gotB, f, b, pair*c.s)
			}
			scores := c.b * c.h * c.s * c.s
			flash := 0
			for k := range graph.TensorID(one.NumTensors()) {
				x := one.Tensor(k)
				if e, _ := x.Shape.Elements(); e == scores && x.Shape[len(x.Shape)-1] == c.s {
					t.Errorf("%s makes scores, %v", one.Op(x.Producer).Name, x.Shape)
				}
			}
			for i := range graph.OpID(one.NumOps()) {
				o := one.Op(i)
				if o.Kind == graph.Attention {
					flash++
				}
				if o.Kind == "Softmax" && strings.Contains(o.Name, "attention") {
					t.Errorf("%s is there", o.Name)
				}
			}
			if int64(flash) != c.layers {
				t.Errorf("%d ops of attention, want %d", flash, c.layers)
			}
			size := int64(2)
			if !c.halfs {
				size = 4
			}
			if got, want := saved(apart)-saved(one), c.layers*(scores*size-c.b*c.h*c.s*4); got != want {
				t.Errorf("saves %d bytes less, want %d", got, want)
			}
		})
	}
}

// TestGradientOfGroupedAttention: the gradient's kernel has a block of each head of queries, whatever
// they share.
func TestGradientOfGroupedAttention(t *testing.T) {
	for _, shared := range []int{4, 2, 1} {
		g := built(t, fmt.Sprintf("llama:layers=1,hidden=64,heads=4,kv_heads=%d,ffn=128,vocab=100,seq=32,batch=2", shared))
		found := 0
		for i := range graph.OpID(g.NumOps()) {
			if o := g.Op(i); o.Kind == graph.AttentionGrad {
				found++
				if o.GEMM.Batch != 2*4 || o.GEMM.M != 32 {
					t.Errorf("%d heads of keys: the gradient is %+v", shared, o.GEMM)
				}
			}
		}
		if found != 1 {
			t.Errorf("%d heads of keys: %d gradients", shared, found)
		}
	}
}
