package fusion_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"placer/baselines/search/fusion"
	"placer/graph"
	"placer/graph/fuse"
)

// build makes a graph of lines "name Kind input ...".
func build(lines ...string) *graph.Graph {
	b := graph.NewBuilder("case")
	at := map[string]graph.OpID{}
	for _, line := range lines {
		w := strings.Fields(line)
		var in []graph.TensorID
		for _, x := range w[2:] {
			in = append(in, b.Output(at[x], 0))
		}
		at[w[0]] = b.Op(graph.Op{Name: w[0], Kind: graph.Kind(w[1])}, in, graph.Tensor{Bytes: 8})
	}
	g, err := b.Build()
	if err != nil {
		panic(err)
	}
	return g
}

// visited lists the ops with a fusion priority.
func visited(g *graph.Graph, f []uint8) string {
	var names []string
	for i, p := range f {
		if p > 0 {
			names = append(names, g.Op(graph.OpID(i)).Name)
		}
	}
	return strings.Join(names, " ")
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		name              string
		lines             []string
		apart             string // an op on another device
		remapper, byRules string // ops to be fused with their readers
	}{
		{"product, bias, activation", []string{"x Placeholder", "m MatMul x", "b BiasAdd m", "r Relu b"}, "", "m b", "m b"},
		{"product and bias", []string{"x Placeholder", "m MatMul x", "b BiasAdd m", "t Softmax b"}, "", "m", "m"},
		{"no bias", []string{"x Placeholder", "m MatMul x", "r Relu m"}, "", "", ""},
		{"bias read twice", []string{"x Placeholder", "m Conv2D x", "b BiasAdd m", "r Relu b", "s Softmax b"}, "", "m", "m"},
		{"product read twice", []string{"x Placeholder", "m Conv2D x", "b BiasAdd m", "s Softmax m"}, "", "", ""},
		{"its shape is no reader", []string{"x Placeholder", "m Conv2D x", "b BiasAdd m", "s Shape m"}, "", "m", "m"},
		{"another device", []string{"x Placeholder", "m MatMul x", "b BiasAdd m"}, "b", "", ""},
		{"batch norm", []string{"x Placeholder", "n FusedBatchNorm x", "r Relu n"}, "", "n", "n"},
		{"batch norm and side input", []string{"x Placeholder", "n FusedBatchNorm x", "a Add n x", "r Relu a"}, "", "n a", "n a"},
		{"elementwise chain", []string{"x Placeholder", "a Mul x", "b Tanh a", "v Reshape b", "c Add v"}, "", "", "a b v"},
		{"all readers or none", []string{"x Placeholder", "a Mul x", "b Relu a", "m MatMul a"}, "", "", ""},
		{"cheap for two", []string{"x Placeholder", "a Mul x", "b Relu a", "c Neg a"}, "", "", "a"},
		{"expensive for two", []string{"x Placeholder", "a Tanh x", "b Relu a", "c Neg a"}, "", "", ""},
		{"a reduction ends", []string{"x Placeholder", "a Mul x", "s BiasAddGrad a a", "b Relu s"}, "", "", "a s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := build(c.lines...)
			device := make([]uint8, g.NumOps())
			for i := range device {
				if g.Op(graph.OpID(i)).Name == c.apart {
					device[i] = 1
				}
			}
			r := fuse.NewRules(g)
			if got := visited(g, fusion.Remapper(r, device)); got != c.remapper {
				t.Errorf("remapper fuses %q, want %q", got, c.remapper)
			}
			f := fusion.Default(r, device)
			if got := visited(g, f); got != c.byRules {
				t.Errorf("default fuses %q, want %q", got, c.byRules)
			}
			if err := fuse.Check(g, device, fuse.NewFuser(r).Fuse(device, f)); err != nil {
				t.Error(err)
			}
		})
	}
}

func Example() {
	g := build("x Placeholder", "m MatMul x", "b BiasAdd m", "r Relu b")
	device := make([]uint8, g.NumOps())
	fmt.Println(fusion.None(g.NumOps()), fusion.Default(fuse.NewRules(g), device), slices.Max(fusion.All(4)))
	// Output:
	// [0 0 0 0] [0 1 1 0] 1
}

// An op of a trace may have no outputs: control dependencies alone tie it to the next.
func TestOpsWithoutOutputs(t *testing.T) {
	b := graph.NewBuilder("trace")
	first := b.Op(graph.Op{Name: "m", Kind: "MatMul"}, nil)
	b.Control(first, b.Op(graph.Op{Name: "n", Kind: "FusedBatchNorm"}, nil))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if got := visited(g, fusion.Default(fuse.NewRules(g), make([]uint8, 2))); got != "" {
		t.Errorf("%q are fused, want nothing", got)
	}
}
