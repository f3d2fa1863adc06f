package rl2017

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"placer/graph"
	"placer/graph/unit"
	"placer/units"
	"placer/workloads"
)

type maker struct{ *graph.Builder }

func newMaker() maker { return maker{graph.NewBuilder("test")} }

func (m maker) op(o graph.Op, in ...graph.OpID) graph.OpID {
	o.Name = fmt.Sprintf("op%d", m.NumOps())
	if o.Kind == "" {
		o.Kind = "MatMul"
	}
	if o.Phase != graph.Backward {
		o.Forward = graph.None
	}
	var ts []graph.TensorID
	for _, i := range in {
		ts = append(ts, m.Output(i, 0))
	}
	return m.Op(o, ts, graph.Tensor{Bytes: 100})
}

func groupsOf(t *testing.T, m maker, special [][]graph.OpID, most int, room units.Bytes) [][]graph.OpID {
	t.Helper()
	g, err := m.Build()
	if err != nil {
		t.Fatal(err)
	}
	seconds := make([]float64, g.NumOps())
	for i := range seconds {
		seconds[i] = 1
	}
	p, err := colocation{g, special, seconds, most, room}.groups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for u, ops := range p.Ops {
		for _, i := range ops {
			if p.Of[i] != int32(u) {
				t.Fatalf("op %d is listed in group %d but belongs to %d", i, u, p.Of[i])
			}
		}
		total += len(ops)
	}
	if total != g.NumOps() {
		t.Fatalf("groups hold %d ops of %d", total, g.NumOps())
	}
	return p.Ops
}

const plenty = 1 << 40

// TestSoleConsumer: section 3.3: an op whose output one op alone reads is
// co-located with it, again and again: 0 -> 1 -> 3 <- 2, where 4 reads 1 too, so
// that 1 stays apart, then 0 and 1 are one.
func TestSoleConsumer(t *testing.T) {
	m := newMaker()
	a := m.op(graph.Op{})
	b := m.op(graph.Op{}, a)
	c := m.op(graph.Op{})
	m.op(graph.Op{}, b, c)
	m.op(graph.Op{}, b)
	got := groupsOf(t, m, nil, 100, plenty)
	want := [][]graph.OpID{{0, 1}, {2, 3}, {4}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("groups %v, want %v", got, want)
	}
}

// TestFrameworkGroups: the framework's groups, and gradients with what they are
// gradients of.
func TestFrameworkGroups(t *testing.T) {
	m := newMaker()
	v := m.op(graph.Op{Group: 1})
	x := m.op(graph.Op{}, v)
	y := m.op(graph.Op{}, x, v)
	dy := m.op(graph.Op{Phase: graph.Backward, Forward: y}, y, x)
	m.op(graph.Op{Phase: graph.Backward, Forward: x}, dy, x)
	m.op(graph.Op{Group: 1, Phase: graph.Update}, dy, v)
	for range 2 { // so that no group has a sole consumer
		m.op(graph.Op{}, v, x, y)
	}
	got := groupsOf(t, m, nil, 100, plenty)
	want := [][]graph.OpID{{0, 5}, {1, 4}, {2, 3}, {6}, {7}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("groups %v, want %v", got, want)
	}
}

// TestSpecialGroupsStayWhole: what the builder named does not flow into its
// reader, and single ops still do.
func TestSpecialGroupsStayWhole(t *testing.T) {
	m := newMaker()
	a := m.op(graph.Op{})
	b := m.op(graph.Op{}, a)
	c := m.op(graph.Op{}, b)
	d := m.op(graph.Op{}, c)
	m.op(graph.Op{}, d)
	got := groupsOf(t, m, [][]graph.OpID{{a, b}, {c, d}}, 100, plenty)
	want := [][]graph.OpID{{0, 1}, {2, 3}, {4}}
	if !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("groups %v, want %v", got, want)
	}
}

// TestMostGroups: no more than asked for, and none holds more than there is room.
func TestMostGroups(t *testing.T) {
	ladder := func() maker {
		m := newMaker()
		last := []graph.OpID{m.op(graph.Op{Resident: 10}), m.op(graph.Op{Resident: 10})}
		for range 20 {
			last = []graph.OpID{m.op(graph.Op{Resident: 10}, last...), m.op(graph.Op{Resident: 10}, last...)}
		}
		return m
	}
	if n := len(groupsOf(t, ladder(), nil, 100, plenty)); n != 42 {
		t.Errorf("%d groups of a ladder of 42 ops, want all", n)
	}
	for _, most := range []int{20, 7, 1} {
		if n := len(groupsOf(t, ladder(), nil, most, plenty)); n != most {
			t.Errorf("%d groups, want %d", n, most)
		}
	}
	for _, ops := range groupsOf(t, ladder(), nil, 1, 40) {
		if len(ops) > 4 {
			t.Errorf("a group of %d ops holds %d bytes, want at most 40", len(ops), 10*len(ops))
		}
	}
}

// TestSpecialByStructure: cells where there is no convolution.
func TestSpecialByStructure(t *testing.T) {
	m := newMaker()
	a := m.op(graph.Op{FLOPs: 1})
	m.op(graph.Op{FLOPs: 1}, a)
	g, err := m.Build()
	if err != nil {
		t.Fatal(err)
	}
	h, err := unit.Find(g, []float64{1, 1})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, ops := range modules(g, h) {
		n += len(ops)
	}
	if n == 0 || convolutional(g) {
		t.Errorf("%d ops in special groups, convolutional %v", n, convolutional(g))
	}
}

// A policy that is stopped while it groups the ops of a large graph says so.
func TestStoppedWhileGrouping(t *testing.T) {
	g, err := workloads.Build("rnnlm:layers=1,unroll=4")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	stop(why)
	if p, err := (colocation{g, nil, make([]float64, g.NumOps()), 1, 1 << 40}).groups(ctx); !errors.Is(err, why) {
		t.Errorf("came to %v and %v, want the reason", p, err)
	}
}
