package tensorflow

import (
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/units"
)

// listing writes a loop of ten iterations over a state of [2,4], which puts each new state in
// a list that has room for ten, and pushes the product, that state and a weight on lists that
// a second loop takes them from. attrs are those of the loops.
func listing(attrs ...string) string {
	inner := func(nodes string) string { return strings.ReplaceAll(nodes, "node {", "node_def {") }
	function := func(name, in, out, nodes, ret string) string {
		var args, rets string
		for _, a := range strings.Fields(in) {
			k, typ, _ := strings.Cut(a, ":")
			args += " input_arg { name: \"" + k + "\" type: DT_" + typ + " }"
		}
		for _, a := range strings.Fields(out) {
			k, typ, _ := strings.Cut(a, ":")
			args += " output_arg { name: \"" + k + "\" type: DT_" + typ + " }"
		}
		for _, r := range strings.Fields(ret) {
			k, of, _ := strings.Cut(r, "=")
			rets += " ret { key: \"" + k + "\" value: \"" + of + "\" }"
		}
		return "function {\n signature { name: \"" + name + "\"" + args + " }\n" + inner(nodes) + rets + "\n}\n"
	}
	list := func(name, op string, in ...string) string { return node(name, op, in, "element_dtype", float) }
	const vars, outs = "i:INT32 n:INT32 h:FLOAT w:FLOAT out:VARIANT a:VARIANT b:VARIANT c:VARIANT", "i2:INT32 n2:INT32 h2:FLOAT w2:FLOAT out2:VARIANT a2:VARIANT b2:VARIANT c2:VARIANT"
	const types = "list { type: DT_INT32 type: DT_INT32 type: DT_FLOAT type: DT_FLOAT type: DT_VARIANT type: DT_VARIANT type: DT_VARIANT type: DT_VARIANT }"
	loop := func(name, body string, in ...string) string {
		return node(name, "While", in, append([]string{"cond", `func { name: "go" }`, "body", `func { name: "` + body + `" }`, "T", types,
			"_output_shapes", "list { shape { } shape { } shape { dim { size: 2 } dim { size: 4 } } shape { dim { size: 4 } dim { size: 4 } } shape { } shape { } shape { } shape { } }"}, attrs...)...)
	}
	next := integer("one", "1") + node("next", "AddV2", []string{"i", "one:output:0"}, "T", counts)
	return integer("zero", "0") + integer("ten", "10") + holder("x", 2, 4) + holder("w", 4, 4) + integer("any", "-1") +
		list("reserve", "TensorListReserve", "any", "ten") + list("empty_a", "EmptyTensorList", "any", "any") + list("empty_b", "EmptyTensorList", "any", "any") + list("empty_c", "EmptyTensorList", "any", "any") +
		loop("there", "forward", "zero", "ten", "x", "w", "reserve", "empty_a", "empty_b", "empty_c") +
		node("results", "TensorListStack", []string{"there:4", "any"}, "element_dtype", float, "_output_shapes", "list { shape { dim { size: 10 } dim { size: 2 } dim { size: 4 } } }") +
		loop("back", "backward", "zero", "ten", "x", "w", "reserve", "there:5", "there:6", "there:7") +
		"library {\n" + function("go", vars, "r:BOOL", node("less", "Less", []string{"i", "n"}, "T", counts), "r=less:z:0") +
		function("forward", vars, outs, next+node("mul", "MatMul", []string{"h", "w"}, "T", float)+node("new", "Tanh", []string{"mul:product:0"}, "T", float)+
			list("set", "TensorListSetItem", "out", "i", "new:y:0")+list("push_a", "TensorListPushBack", "a", "mul:product:0")+list("push_b", "TensorListPushBack", "b", "new:y:0")+
			list("item", "TensorListGetItem", "b", "i", "i")+list("push_c", "TensorListPushBack", "c", "item:item:0"),
			"i2=next:z:0 n2=n h2=new:y:0 w2=w out2=set:output_handle:0 a2=push_a:output_handle:0 b2=push_b:output_handle:0 c2=push_c:output_handle:0") +
		function("backward", vars, outs, next+list("pop", "TensorListPopBack", "a", "i"),
			"i2=next:z:0 n2=n h2=h w2=w out2=out a2=pop:output_handle:0 b2=b c2=c") + "}\n"
}

// A list holds what was put in: the products and states of all iterations, once each, from
// their loop to the last op that reads the list. What lists hold by two names, or what others
// hold, takes no more.
func TestLists(t *testing.T) {
	const all = units.Bytes(10 * 2 * 4 * 4)
	for name, c := range map[string]struct {
		attrs  []string
		ops    []string // that hold the results and the products
		reader string
	}{
		"inlined": {nil, []string{"there/set", "there/push_a"}, "back/pop"},
		"one op":  {[]string{"_noinline", "b: true"}, []string{"there"}, "back"},
	} {
		x, err := Import([]byte(listing(c.attrs...)), "f", nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		held := map[string][]graph.TensorID{} // by op
		for i := range graph.OpID(x.Graph.NumOps()) {
			first, end := x.Graph.Outputs(i)
			for k := first; k < end; k++ {
				if x.Graph.Tensor(k).Bytes == all && x.Graph.Op(i).Kind != "Pack" {
					held[x.Graph.Op(i).Name] = append(held[x.Graph.Op(i).Name], k)
				}
			}
		}
		var lists []graph.TensorID
		for _, op := range c.ops {
			lists = append(lists, held[op]...)
			delete(held, op)
		}
		if len(lists) != 2 || len(held) > 0 {
			t.Errorf("%s: %v of %v have %v, and %v", name, lists, c.ops, all, held)
			continue
		}
		results, _ := find(t, x.Graph, "results")
		reader, _ := find(t, x.Graph, c.reader)
		if !slices.Contains(x.Graph.Inputs(results), lists[0]) || !slices.Contains(x.Graph.Inputs(reader), lists[1]) {
			t.Errorf("%s: results reads %v, %s reads %v; want %v", name, x.Graph.Inputs(results), c.reader, x.Graph.Inputs(reader), lists)
		}
	}
}

// What is taken from a list has the shape of what was put in, where the file has it open: the
// batch is no time step.
func TestShapesOfListItems(t *testing.T) {
	const stated = "shape { dim { size: 10 } dim { size: 2 } dim { size: 4 } }"
	x, err := Import([]byte(strings.Replace(listing(), stated, "shape { dim { size: -1 } dim { size: -1 } dim { size: 4 } }", 1)), "f", map[string]int64{"batch": 7})
	if err != nil {
		t.Fatal(err)
	}
	id, _ := find(t, x.Graph, "results")
	first, _ := x.Graph.Outputs(id)
	if s := x.Graph.Tensor(first).Shape; !slices.Equal(s, []int64{10, 2, 4}) {
		t.Errorf("%v", s)
	}
}
