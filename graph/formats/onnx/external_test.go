package onnx

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// outside is a tensor whose data are in a file, 256 bytes from its beginning.
func outside(name string, e elem, length string, dims ...int64) []byte {
	parts := tensorOf(name, e, dims...)
	for key, value := range map[string]string{"location": "w.data", "offset": "256", "length": length} {
		if value != "" {
			parts = append(parts, bytesField(13, concatBytes(textField(1, key), textField(2, value)))...)
		}
	}
	return initOf(parts)
}

// Shapes that lie in a file of external data are read from there; weights, biases among them,
// are not, however many bytes there are.
func TestExternalShapes(t *testing.T) {
	model := modelOf(nodeOf("", "Reshape", list("x", "s"), list("v")), nodeOf("", "MatMul", list("v", "w"), list("p")), nodeOf("", "Add", list("p", "b"), list("y")),
		inputOf("x", 2, 3), outside("s", elemInt64, "16", 2), outside("w", elemFloat, "", 6, 1<<20), outside("b", elemFloat, "", 1<<20))
	var asked []string
	cfg := Default()
	cfg.External = func(name string, offset, length int64) ([]byte, error) {
		asked = append(asked, fmt.Sprintf("%s %d %d", name, offset, length))
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, 1), 6), nil
	}
	g, sum, err := Import(model, "m.onnx", cfg)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"w.data 256 16"}; !slices.Equal(asked, want) {
		t.Errorf("read %q, want %q", asked, want)
	}
	if o, shape := last(g); o.Kind != "AddV2" && o.Kind != "Add" || !slices.Equal(shape, []int64{1, 1 << 20}) || sum.Params != 7<<20 || !slices.Equal(sum.Data, []string{"w.data"}) {
		t.Errorf("%s of %v, %d parameters, data in %q", o.Kind, shape, sum.Params, sum.Data)
	}
	cfg.External = func(string, int64, int64) ([]byte, error) { return nil, errors.New("no such file") }
	if _, _, err := Import(model, "m.onnx", cfg); err == nil || err.Error() != "m.onnx: node 0 (Reshape): input 1 must be a constant, or follow from shapes; w.data, where values of it are, cannot be read: no such file" {
		t.Error(err)
	}
	wrong := modelOf(nodeOf("", "Reshape", list("x", "s"), list("y")), inputOf("x", 2, 3), outside("s", elemInt64, "12", 2))
	if _, _, err := Import(wrong, "m.onnx", cfg); err == nil || !strings.HasSuffix(err.Error(), "or follow from shapes") {
		t.Error(err)
	}
}
