package fusion

import (
	"fmt"
	"slices"
	"testing"

	"placer/graph"
	"placer/graph/fuse"
	"placer/placer/problem/problemtest"
	"placer/plan"
)

// TestClasses: every op that can be fused with a reader is in one class, no class
// is empty, the ops of a class are of one kind and read the same kinds, and there
// are never more classes than asked for.
func TestClasses(t *testing.T) {
	p := problemtest.OnP100s(t, "rnnlm2", 2, plan.Fuse)
	seconds := p.Evaluator.OpSeconds(0)
	for _, most := range []int{1, 5, 60, 1000} {
		x := newClasses(p.Graph, seconds, most)
		if len(x.ops) > most {
			t.Errorf("%d classes, want at most %d", len(x.ops), most)
		}
		able := slices.Sorted(slices.Values(fuse.NewRules(p.Graph).Fusible()))
		var all []int32
		for c, ops := range x.ops {
			if len(ops) == 0 {
				t.Errorf("class %d is empty", c)
			}
			all = append(all, ops...)
			surroundings := map[string]bool{}
			for _, i := range ops {
				if x.of[i] != int32(c) {
					t.Fatalf("op %d is in class %d, said to be in %d", i, c, x.of[i])
				}
				text := fmt.Sprint(p.Graph.Op(graph.OpID(i)).Kind)
				for _, in := range p.Graph.Inputs(graph.OpID(i)) {
					text += fmt.Sprint(" ", p.Graph.Op(p.Graph.Tensor(in).Producer).Kind)
				}
				surroundings[text] = true
			}
			if most == 1000 && len(surroundings) > 1 {
				t.Errorf("class %d has %v", c, surroundings)
			}
		}
		slices.Sort(all)
		if !slices.Equal(all, able) {
			t.Errorf("most %d: the classes hold %d ops, want the %d that can be fused", most, len(all), len(able))
		}
		if most == 1000 && (len(x.ops) < 20 || len(x.ops)*3 > len(able)) {
			t.Errorf("%d classes of %d ops: no classes at all", len(x.ops), len(able))
		}
	}
}

// TestSplit: the parts of a class are its ops with one label, in order.
func TestSplit(t *testing.T) {
	p := problemtest.OnP100s(t, "trfxl2", 2, plan.Fuse)
	x := newClasses(p.Graph, p.Evaluator.OpSeconds(0), 384)
	time := times(p.Units)
	if low, high := slices.Min(time), slices.Max(time); low != 0 || high == 0 {
		t.Fatalf("places in time from %d to %d", low, high)
	}
	y := x.split(time)
	n := 0
	for c, ops := range y.ops {
		n += len(ops)
		for k, i := range ops {
			if y.of[i] != int32(c) || x.of[i] != x.of[ops[0]] || time[i] != time[ops[0]] || k > 0 && i <= ops[k-1] {
				t.Fatalf("class %d holds op %d of class %d and time %d", c, i, x.of[i], time[i])
			}
		}
	}
	for c, ops := range x.ops {
		labels, parts := map[int32]bool{}, map[int32]bool{}
		for _, i := range ops {
			n--
			labels[time[i]], parts[y.of[i]] = true, true
		}
		if len(labels) != len(parts) {
			t.Errorf("class %d has %d parts of %d places in time", c, len(parts), len(labels))
		}
	}
	if n != 0 {
		t.Errorf("%d ops more in the parts than in the whole", n)
	}
}
