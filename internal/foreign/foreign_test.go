package foreign_test

import (
	"fmt"
	"slices"
	"testing"

	"placer/internal/foreign"
)

func TestKeys(t *testing.T) {
	for doc, want := range map[string][]string{
		`{"a": 1, "b": {"c": 2}, "d": 3}`: {"a", "b"},
		`{"a": [1, {"x": 2}]}`:            {"a"},
		`[1]`:                             nil,
		``:                                nil,
		`{"a": 1, "b"`:                    {"a", "b"},
	} {
		if got := foreign.Keys([]byte(doc), 2); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", doc, got, want)
		}
	}
}

func TestGraphName(t *testing.T) {
	for file, want := range map[string]string{"a/b/net.json": "net", "vgg.graph.txt": "vgg", "stdin": "stdin", ".json": "graph"} {
		if got := foreign.GraphName(file); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}

func Example() {
	var doc struct {
		Nodes []struct{ ID int }
	}
	fmt.Println(foreign.Decode([]byte("{\"nodes\": [\n{\"id\": 1.5}]}"), "net.json", &doc))
	// Output:
	// net.json: line 2, column 11: Nodes.ID: a JSON number 1.5, want a whole number
}
