package safetensors_test

import (
	"bytes"
	"fmt"

	"placer/nn/safetensors"
)

func Example() {
	var b bytes.Buffer
	f := &safetensors.File{Tensors: []safetensors.Tensor{{Name: "w", Type: "U8", Shape: []int{2}, Data: []byte{1, 2}}}}
	fmt.Println(safetensors.Write(&b, f))
	g, err := safetensors.Read(b.Bytes())
	fmt.Println(g.Tensors[0], err)
	// Output:
	// <nil>
	// {w U8 [2] [1 2]} <nil>
}
