package foreign_test

import (
	"fmt"
	"strings"
	"testing"

	"placer/graph/formats/foreign"
)

func TestHasKey(t *testing.T) {
	for doc, want := range map[string]string{
		`{"a": 1, "b": {"c": 2}, "d": 3}`: "ab",
		`{"a": [1, {"x": 2}]}`:            "a",
		`[1]`:                             "",
		``:                                "",
		`{"a": 1, "b"`:                    "ab",
	} {
		for _, key := range []string{"a", "b", "c", "d", "x"} {
			if got := foreign.HasKey([]byte(doc), 2, "z", key); got != strings.Contains(want, key) {
				t.Errorf("%s has %s among the first two: %v", doc, key, got)
			}
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
