package onnx

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"placer/graph"
)

func TestModuleOf(t *testing.T) {
	for scopes, want := range map[string]string{
		"['', 'transformer', 'transformer.h.0', 'transformer.h.0.attn', 'matmul']": "transformer.h.0.attn",
		`["", "lm_head", "linear"]`: "lm_head",
		"['', 'add']":               "",
		"['add']":                   "",
		"":                          "",
		"no list":                   "",
	} {
		if got := moduleOf(scopes); got != want {
			t.Errorf("%s: %q, want %q", scopes, got, want)
		}
	}
}

// The path that torch's exporter writes on a node is the op's module.
func TestNameScopes(t *testing.T) {
	text := func(b []byte, n protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
	}
	entry := text(text(nil, 1, scopesKey), 2, "['', 'h', 'h.3', 'relu']")
	n := text(text(text(text(text(nil, 1, "x"), 2, "y"), 3, "relu"), 4, "Relu"), 9, string(entry))
	value := func(name string) string {
		shape := text(nil, 1, string(protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 4)))
		tensor := text(protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1), 2, string(shape))
		return string(text(text(nil, 1, name), 2, string(text(nil, 1, string(tensor)))))
	}
	g := text(text(text(text(nil, 1, string(n)), 2, "g"), 11, value("x")), 12, value("y"))
	opset := protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), 17)
	model := text(text(protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 8), 7, string(g)), 8, string(opset))
	got, _, err := Import(model, "m.onnx", Default())
	if err != nil {
		t.Fatal(err)
	}
	for i := range graph.OpID(got.NumOps()) {
		if o := got.Op(i); o.Kind == "Relu" && o.Module == "h.3" {
			return
		}
	}
	t.Error("no op of module h.3")
}
