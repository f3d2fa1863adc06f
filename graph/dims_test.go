package graph_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"placer/graph"
)

// open is a graph file whose numbers depend on two sizes.
const open = `{"format": "placer graph 1", "name": "g", "dims": {"batch": {"size": 4, "min": 2}, "seq": {"size": 10}}, "ops": [
{"name": "x", "kind": "Placeholder", "out": [{"shape": ["batch", "seq", 8]}]},
{"name": "w", "kind": "Const", "resident": "32*seq", "out": [{"shape": ["seq", 8], "resident": true}]},
{"name": "y", "kind": "MatMul", "flops": "max(16*batch*batch*seq, 9000000000000000000000000*seq - 3)", "gemm": [1, "batch", "batch", "8*seq"], "bytes": "64*batch*seq + 4 * batch*batch", "workspace": "2*seq - batch", "in": ["x", "x", "w"], "out": [{"shape": ["batch", "batch"]}, {"bytes": "3*batch"}]}]}`

// A file with open sizes is the file that has their values written out.
func TestOpenSizes(t *testing.T) {
	for _, c := range []struct {
		given          map[string]int64
		batch, seq     int64
		flops          string // of y, in all digits
		bytes, scratch int64
	}{
		{nil, 4, 10, "89999999999999999999999997", 64*40 + 64, 16},
		{map[string]int64{"batch": 2, "other": 7}, 2, 10, "89999999999999999999999997", 64*20 + 16, 18},
		{map[string]int64{"batch": 3, "seq": 5}, 3, 5, "44999999999999999999999997", 64*15 + 36, 7},
	} {
		g, dims, err := graph.ReadAt([]byte(open), "g.json", c.given)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]graph.Dim{{Name: "batch", Size: 4, Min: 2}, {Name: "seq", Size: 10, Min: 1}}, dims); d != "" {
			t.Errorf("dims:\n%s", d)
		}
		n := func(x int64) string { return strconv.FormatInt(x, 10) }
		b, s := n(c.batch), n(c.seq)
		fixed := `{"format": "placer graph 1", "name": "g", "ops": [
{"name": "x", "kind": "Placeholder", "out": [{"shape": [` + b + `, ` + s + `, 8]}]},
{"name": "w", "kind": "Const", "resident": ` + n(32*c.seq) + `, "out": [{"shape": [` + s + `, 8], "resident": true}]},
{"name": "y", "kind": "MatMul", "flops": ` + c.flops + `, "gemm": [1, ` + b + `, ` + b + `, ` + n(8*c.seq) + `], "bytes": ` + n(c.bytes) + `, "workspace": ` + n(c.scratch) + `, "in": ["x", "x", "w"], "out": [{"shape": [` + b + `, ` + b + `]}, {"bytes": ` + n(3*c.batch) + `}]}]}`
		sameGraph(t, read(t, fixed), g)
	}
}

func TestOpenSizesErrors(t *testing.T) {
	file := func(dims, number string) string {
		return `{"format": "placer graph 1", ` + dims + `"ops": [
{"name": "x", "kind": "Relu", "bytes": ` + number + `}]}`
	}
	batch := `"dims": {"batch": {"size": 4, "min": 2}}, `
	for _, c := range []struct{ name, doc, want string }{
		{"no dims", file("", `"4*batch"`), "g.json: line 2, column 40: op 0 (x): a string, want a whole number"},
		{"another name", file(batch, `"4*bach"`), `g.json: line 2, column 40: op 0 (x): no size "bach" is in the file's dims, which stand before its ops`},
		{"too small", file(batch, `"4*batch - 40"`), "g.json: line 2, column 40: op 0 (x): -24 is out of range for batch=4, want 0 to"},
		{"too large", file(batch, `"9000000000000000000*batch*batch"`), "144000000000000000000 is out of range for batch=4"},
		{"long", file(batch, `"`+strings.Repeat("9", 32)+`"`), "want a whole number or the name of a size"},
		{"power", file(batch, `"batch^2"`), `"batch^2", want a whole number or the name of a size of the file's dims`},
		{"sign", file(batch, `"-batch"`), `"", want a whole number or the name`},
		{"nothing", file(batch, `""`), `"", want a whole number or the name`},
		{"two words", file(batch, `"4 batch"`), `"4 batch", want`},
		{"open bracket", file(batch, `"max(4, batch"`), `"max(4, batch" has no closing bracket`},
		{"comma", file(batch, `"4, batch"`), `want a polynomial or max(A, B)`},
		{"terms", file(batch, `"`+strings.Repeat("1+", 64)+`1"`), "more than 64 terms"},
		{"factors", file(batch, `"`+strings.Repeat("1*", 8)+`1"`), "more than 8 factors"},
		{"params", `{"format": "placer graph 1", ` + batch + `"ops": [{"name": "x", "kind": "Relu", "params": "batch"}]}`, "a string, want a whole number"},
		{"after the ops", `{"format": "placer graph 1", "ops": [{"name": "x", "kind": "Relu"}], "dims": {}}`, "dims have to stand before the ops"},
		{"no size", file(`"dims": {"batch": {"min": 2}}, `, "1"), `key "size" is missing`},
		{"size below min", file(`"dims": {"batch": {"size": 1, "min": 2}}, `, "1"), "dim batch: size 1 is below its min, 2"},
		{"zero", file(`"dims": {"batch": {"size": 0}}, `, "1"), "0 is out of range, want 1 to"},
		{"twice", file(`"dims": {"n": {"size": 1}, "n": {"size": 1}}, `, "1"), `dim "n" occurs twice`},
		{"name", file(`"dims": {"my batch": {"size": 1}}, `, "1"), `dim "my batch": want a name of letters, digits and underscores`},
		{"many", file(`"dims": {"a": {"size": 1}, "b": {"size": 1}, "c": {"size": 1}, "d": {"size": 1}, "e": {"size": 1}, "f": {"size": 1}, "g": {"size": 1}, "h": {"size": 1}, "i": {"size": 1}}, `, "1"), "more than 8 dims"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, err := graph.Read([]byte(c.doc), "g.json")
			if err == nil || g != nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if s := err.Error(); strings.Contains(s, "\n") || !strings.HasPrefix(s, "g.json: ") {
				t.Errorf("error is not one line that starts with the file's name: %s", s)
			}
		})
	}
	if _, _, err := graph.ReadAt([]byte(open), "g.json", map[string]int64{"batch": 1}); err == nil || err.Error() != "g.json: batch=1: the file holds for 2 and more" {
		t.Errorf("below the min: %v", err)
	}
}
