package safetensors

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestFloats: what goes in comes out of a file to the bit; numbers that are not finite, and
// elements of another type, do not.
func TestFloats(t *testing.T) {
	want := []float32{1, -0.1, math.MaxFloat32, math.SmallestNonzeroFloat32, 0, 3}
	var b bytes.Buffer
	if err := Write(&b, &File{Tensors: []Tensor{Floats("x", want, 2, 3)}}); err != nil {
		t.Fatal(err)
	}
	f, err := Read(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	x := f.Lookup("x")
	if got, err := x.Floats(); err != nil || !slices.Equal(got, want) || !slices.Equal(x.Shape, []int{2, 3}) {
		t.Errorf("%v, %v, error %v", x.Shape, got, err)
	}
	for name, c := range map[string]struct {
		x    Tensor
		want string
	}{
		"infinite":  {Floats("x", []float32{1, float32(math.Inf(-1))}, 2), "element 1 is -Inf"},
		"no number": {Floats("x", []float32{float32(math.NaN())}, 1), "element 0 is NaN"},
		"integers":  {Tensor{Name: "x", Type: I64, Shape: []int{1}, Data: make([]byte, 8)}, "x is I64, want F32"},
	} {
		if _, err := c.x.Floats(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
}
