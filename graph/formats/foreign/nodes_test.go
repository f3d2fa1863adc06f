package foreign_test

import (
	"testing"

	"placer/graph/formats/foreign"
)

func TestNodes(t *testing.T) {
	id := func(x int64) *int64 { return &x }
	n := foreign.NewNodes()
	for _, x := range []int64{7, -1} {
		if err := n.Add(id(x), "a"); err != nil {
			t.Error(err)
		}
	}
	if err := n.Add(id(7), "a"); err == nil || err.Error() != "node 7 (a): an earlier node has the same id" {
		t.Errorf("the same id: %v", err)
	}
	if err := n.Add(nil, "b"); err == nil || err.Error() != "node 2 of the list (b) has no id" {
		t.Errorf("no id: %v", err)
	}
	if u, v, err := n.Edge(0, id(-1), id(7)); u != 1 || v != 0 || err != nil {
		t.Errorf("edge from %d to %d, %v", u, v, err)
	}
	for _, e := range [][2]*int64{{nil, id(7)}, {id(7), nil}, {id(7), id(8)}, {id(8), id(7)}} {
		if _, _, err := n.Edge(1, e[0], e[1]); err == nil {
			t.Errorf("edge of %v passed", e)
		}
	}
	for _, x := range []struct {
		name string
		id   int64
		want string
	}{{"a", 1, "a"}, {"a", 2, "a#2"}, {"", 3, "#3"}, {"a", 2, ""}} {
		if got, err := n.Name(x.name, x.id); got != x.want || (err != nil) != (x.want == "") {
			t.Errorf("%q of %d: %q, %v", x.name, x.id, got, err)
		}
	}
}
