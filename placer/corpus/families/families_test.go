package families

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestHoldOut: the families held out and their kin are not drawn from, and what joins a
// member of one is out with it.
func TestHoldOut(t *testing.T) {
	for _, f := range All() {
		left, err := Choose(All(), nil, []string{f.Name})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range left {
			if g.Name == f.Name || Out([]string{f.Name}, []string{g.Name}) {
				t.Errorf("%s is trained on where %s is held out", g.Name, f.Name)
			}
		}
	}
	for _, c := range []struct {
		of, held string
		out      bool
	}{
		{"moe", "trfxl", true}, {"transformer", "trfxl", true}, {"skips", "wavenet", true}, {"seq2seq", "gnmt", true}, {"gnmt", "seq2seq", true},
		{"gnmt", "rnnlm", false}, {"stack", "rnnlm", true}, {"stack", "gnmt", false}, {"experts", "trfxl", false}, {"mix unet gnmt", "bilstm", true}, {"mix unet rnnlm", "gnmt", false},
	} {
		if got := Out(strings.Fields(c.of), []string{c.held}); got != c.out {
			t.Errorf("%s is out where %s is held out: %v", c.of, c.held, got)
		}
	}
	if _, err := Choose(All(), nil, []string{"nothing"}); err == nil {
		t.Error("an unknown family can be held out")
	}
	for _, set := range related {
		if err := Known(set); err != nil {
			t.Error(err)
		}
	}
}

// TestFamiliesBuild: members of every family build, their forward graphs too, and say
// which families they are of.
func TestFamiliesBuild(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	for _, f := range All() {
		t.Run(f.Name, func(t *testing.T) {
			for range 3 {
				name, of := f.Draw(r)
				g, err := Build(name)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if !g.Layered() || of[0] != f.Name || f.from != nil && len(of) != 3 {
					t.Errorf("%s: %d ops of %v, layered %v", name, g.NumOps(), of, g.Layered())
				}
				if forward, ok := ForInference(name); ok {
					h, err := Build(forward)
					if err != nil || h.NumOps() >= g.NumOps() {
						t.Errorf("%s: %v, %d ops, for training %d", forward, err, h.NumOps(), g.NumOps())
					}
				}
			}
		})
	}
}

// TestMix: a mix has the ops, edges and bytes of its parts.
func TestMix(t *testing.T) {
	parts := []string{"vit:layers=1,hidden=64,heads=2,ffn=64,size=32,batch=2", "towers:6,8,16,1,3"}
	whole, err := Build(mixed + strings.Join(parts, join))
	if err != nil {
		t.Fatal(err)
	}
	ops, edges, control := 0, 0, 0
	var params int64
	for _, p := range parts {
		g, err := Build(p)
		if err != nil {
			t.Fatal(err)
		}
		ops, edges, control, params = ops+g.NumOps(), edges+g.NumEdges(), control+g.NumControl(), params+g.Params()
	}
	if whole.NumOps() != ops || whole.NumEdges() != edges || whole.NumControl() != control || whole.Params() != params {
		t.Errorf("%d ops, %d edges, %d control edges, %d parameters; the parts have %d, %d, %d, %d", whole.NumOps(), whole.NumEdges(), whole.NumControl(), whole.Params(), ops, edges, control, params)
	}
	for _, bad := range []string{"mix:", "mix:vit+nothing", "towers:", "nothing"} {
		if _, err := Build(bad); err == nil {
			t.Errorf("%q builds", bad)
		}
	}
	if !slices.Equal(Names(All())[:13], Names(Papers())) {
		t.Error("the papers' families do not come first")
	}
}
