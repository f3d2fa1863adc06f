package fuse

import (
	"testing"

	"placer/workloads"
)

// The rule of order refuses some unions that no cycle forbids. On the papers'
// graphs, on one device with everything fused that goes, those are few beside the
// unions made (docs/fusion.md).
func TestOrderLosesFewUnions(t *testing.T) {
	for _, name := range []string{"rnnlm2", "trfxl2", "wavenet2", "amoebanet", "inception"} {
		g, err := workloads.Build(name)
		if err != nil {
			t.Fatal(err)
		}
		f := NewFuser(NewRules(g))
		n := g.NumOps()
		device, priority := make([]uint8, n), make([]uint8, n)
		for i := range priority {
			priority[i] = 1
		}
		f.Fuse(device, priority)
		kernels := 0
		for i, h := range f.head {
			if int(h) == i {
				kernels++
			}
		}
		lost, cyclic := 0, 0
		for _, u := range f.fusible {
			for _, to := range f.out[f.at[u]:f.at[u+1]] {
				a, b := f.head[u], f.head[to>>1]
				if to&1 == 0 || !f.tooEarly(a, b) {
					continue
				}
				if f.reaches(a, b) {
					cyclic++
				} else {
					lost++
				}
			}
		}
		t.Logf("%s: %d ops, %d kernels, %d unions; refused: %d for a cycle, %d for the order alone", name, n, kernels, n-kernels, cyclic, lost)
		if lost*10 > n-kernels {
			t.Errorf("%s: %d unions made, %d refused without need", name, n-kernels, lost)
		}
	}
}

// tooEarly reports whether the rule of order alone forbids the union of a and b.
func (f *Fuser) tooEarly(a, b int32) bool {
	if a == b || f.size[a]+f.size[b] > MaxOps || f.holds[a]&f.holds[b]&holdsAnchor != 0 || f.holds[a]|f.holds[b] == holdsAnchor|holdsReduce {
		return false
	}
	early := false
	for i, first := a, true; first || i != a; i, first = f.next[i], false {
		for _, to := range f.out[f.at[i]:f.at[i+1]] {
			if h := f.head[to>>1]; h == b && to&1 == 0 {
				return false
			} else if h != a && h != b && f.pos[to>>1] < f.pos[b] {
				early = true
			}
		}
	}
	return early
}

// reaches reports whether kernel b can be reached from kernel a through others.
func (f *Fuser) reaches(a, b int32) bool {
	seen := map[int32]bool{a: true}
	stack := []int32{a}
	for len(stack) > 0 {
		k := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for i, first := k, true; first || i != k; i, first = f.next[i], false {
			for _, to := range f.out[f.at[i]:f.at[i+1]] {
				h := f.head[to>>1]
				if h == b && k != a {
					return true
				}
				if h != b && !seen[h] && f.pos[h] >= f.pos[a] {
					seen[h] = true
					stack = append(stack, h)
				}
			}
		}
	}
	return false
}
