package vec_test

import (
	"fmt"

	"placer/nn/vec"
)

func ExampleExpShiftSum() {
	logits := []float32{1, 1, -1e9}
	p := make([]float32, 3)
	sum := vec.ExpShiftSum(p, logits, 1, vec.Max(logits))
	vec.Scale(p, 1/sum)
	fmt.Println(p)
	// Output: [0.5 0.5 0]
}
