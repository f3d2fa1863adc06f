package blas_test

import (
	"fmt"

	"placer/nn/blas"
)

func ExampleGonum() {
	a := []float32{1, 2, 3, 4} // [2,2]
	c := make([]float32, 4)
	blas.Gonum{}.Sgemm(false, true, 2, 2, 2, 1, a, 2, a, 2, 0, c, 2) // a times its transpose
	fmt.Println(c)
	// Output: [5 11 11 25]
}
