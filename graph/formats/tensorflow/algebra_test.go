package tensorflow

import (
	"slices"
	"testing"
)

// Factorisations and Fourier transforms have the operations of textbooks; other operators without
// a rule are named.
func TestAlgebra(t *testing.T) {
	const complex64 = "type: DT_COMPLEX64"
	for name, c := range map[string]struct {
		nodes string
		want  float64
	}{
		"Cholesky":              {holder("x", 4, 96, 96) + node("y", "Cholesky", []string{"x"}, "T", float), 4 * 96 * 96 * 96 / 3.},
		"MatrixSolve":           {holder("x", 96, 96) + holder("b", 96, 8) + node("y", "MatrixSolve", []string{"x", "b"}, "T", float), 2*96*96*96/3. + 2*96*96*8},
		"MatrixTriangularSolve": {holder("x", 96, 96) + holder("b", 96, 8) + node("y", "MatrixTriangularSolve", []string{"x", "b"}, "T", float), 96 * 96 * 8},
		"MatrixInverse":         {holder("x", 96, 96) + node("y", "MatrixInverse", []string{"x"}, "T", float), 2 * 96 * 96 * 96},
		"RFFT": {holder("x", 8, 64) + sizes("n", 64) + node("y", "RFFT", []string{"x", "n"}, "Treal", float, "Tcomplex", complex64, "_output_shapes",
			"list { shape { dim { size: 8 } dim { size: 33 } } }"), 5 * 512 * 6 / 2},
		"FFT2D": {node("x", "Placeholder", nil, "dtype", complex64, "shape", dims(8, 64)) + node("y", "FFT2D", []string{"x"}, "Tcomplex", complex64), 5 * 512 * 9},
	} {
		x, err := Import([]byte(c.nodes), "f", nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if _, o := find(t, x.Graph, "y"); float64(o.FLOPs) != c.want {
			t.Errorf("%s: %v operations, want %v", name, float64(o.FLOPs), c.want)
		}
	}
	x, err := Import([]byte(holder("x", 96, 96)+node("y", "Svd", []string{"x"}, "T", float)), "f", nil)
	if want := "operators whose arithmetic is not known cost an operation an element at most: 1 Svd"; err != nil || !slices.Contains(x.Notes, want) {
		t.Errorf("%v, notes %q", err, x.Notes)
	}
	x, err = Import([]byte(holder("x", 8, 64)+node("w", "Placeholder", nil, "dtype", complex64, "shape", dims(64, 6))+node("c", "Complex", []string{"x", "x"}, "T", float)+node("y", "MatMul", []string{"c", "w"}, "T", complex64)), "f", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, o := find(t, x.Graph, "y"); o.FLOPs != 8*8*64*6 {
		t.Errorf("a product of what Complex makes: %v operations", o.FLOPs)
	}
}
