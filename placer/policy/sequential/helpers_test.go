package sequential

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"placer/plan"
)

// views returns c as it is placed and as pretraining has it.
func views(t testing.TB, c Case) (placed, learned *Features) {
	t.Helper()
	p, err := c.Problem()
	if err != nil {
		t.Fatal(err)
	}
	if placed, err = NewFeatures(p); err != nil {
		t.Fatal(err)
	}
	if learned, err = plainFeatures(p); err != nil {
		t.Fatal(err)
	}
	return placed, learned
}

func instanceOf(t testing.TB, c Case) *instance {
	t.Helper()
	w, _ := views(t, c)
	return w.instance(atCells)
}

var small = Case{Workload: "trfxl:layers=1,batch=8,sequence=64,segment=32,hidden=64,ffn=64,heads=2,head_dim=32,vocab=100", GPU: "p100", Devices: 3}

func policy(t testing.TB, hidden int) *Policy {
	t.Helper()
	p, err := NewPolicy(Config{Hidden: hidden}, rand.New(rand.NewPCG(3, 1)))
	if err != nil {
		t.Fatal(err)
	}
	// Scores near 0 would make every gradient but the last layer's vanish.
	for i := range p.net.last.Value {
		p.net.last.Value[i] *= 30
	}
	return p
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func written(t testing.TB, p *Policy) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func budgeted(p *plan.Problem, n int) *plan.Problem {
	q := *p
	q.Budget.Evaluations = n
	return &q
}
