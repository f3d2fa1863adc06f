package corpus

import "testing"

// TestDraw: problems are drawn by seed and number alone, the families take turns, and
// none is larger than it may be.
func TestDraw(t *testing.T) {
	kinds := map[string]bool{}
	binds := 0
	const n = 28
	for i := range n {
		r, p, err := Draw(t.Context(), 1, i)
		if err != nil {
			t.Fatal(err)
		}
		kinds[r.Families[0]] = true
		if p.Graph.NumOps() > large.ops {
			t.Errorf("%s has %d ops", r.Net, p.Graph.NumOps())
		}
		if r.Machine.Memory > 0 {
			binds++
		}
		if i%9 > 0 {
			continue
		}
		again, q, err := Draw(t.Context(), 1, i)
		if err != nil || again.Net != r.Net || again.Machine.String() != r.Machine.String() || q.Graph.Hash() != p.Graph.Hash() || q.Machine.Hash() != p.Machine.Hash() {
			t.Errorf("drawn again: %+v, %v; first %+v", again, err, r)
		}
	}
	if len(kinds) < 25 || binds == 0 || binds == n {
		t.Errorf("%d families, memory binds in %d of %d", len(kinds), binds, n)
	}
}
