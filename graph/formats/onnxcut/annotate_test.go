package onnxcut_test

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"placer/graph/formats/onnxcut"
)

// Annotating twice is annotating once by the second placement, and a device that is not
// there is an error that names the node.
func TestAnnotate(t *testing.T) {
	text := func(b []byte, n protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
	}
	node := text(text(text(text(nil, 1, "x"), 2, "y"), 3, "relu"), 4, "Relu")
	model := text(protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 8), 7, string(text(text(nil, 1, string(node)), 2, "g")))
	on := func(d int) func(*onnxcut.Node) int { return func(*onnxcut.Node) int { return d } }
	devices := []string{"gpu:0", "gpu:1"}
	first, err := onnxcut.Annotate(model, "m", devices, on(0))
	if err != nil {
		t.Fatal(err)
	}
	again, err := onnxcut.Annotate(first, "m", devices, on(1))
	if err != nil {
		t.Fatal(err)
	}
	want, err := onnxcut.Annotate(model, "m", devices, on(1))
	if err != nil || !bytes.Equal(again, want) || bytes.Equal(first, want) {
		t.Errorf("%q after another placement, %q at once: %v", again, want, err)
	}
	if !bytes.Contains(want, []byte("layer_ann")) || !bytes.Contains(want, node) {
		t.Errorf("%q", want)
	}
	if _, err := onnxcut.Annotate(model, "m", devices, on(2)); err == nil || !strings.Contains(err.Error(), "relu") {
		t.Errorf("error %v, want one that names the node", err)
	}
	if _, err := onnxcut.Annotate(nil, "m", devices, on(0)); err == nil {
		t.Error("nothing is a model")
	}
}
