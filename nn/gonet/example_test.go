package gonet_test

import (
	"fmt"
	"math/rand/v2"

	"placer/graphsage"
	"placer/nn"
	"placer/nn/gonet"
)

// Example teaches a network which of two devices each of four nodes is for.
func Example() {
	backend, err := nn.NewBackend(nn.Config{Libraries: []string{}, Workers: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := gonet.Default(2, 2)
	c.Embedding.Width, c.Decision.Width = 32, 32
	net, err := gonet.New(c, rand.New(rand.NewPCG(1, 0)), backend)
	if err != nil {
		fmt.Println(err)
		return
	}
	b := &gonet.Batch{
		X:          nn.Mat{N: 4, D: 2, V: []float32{1, 0, 0, 1, 0, 1, 1, 0}},
		Neighbours: &graphsage.Neighbours{Start: []int32{0, 1, 2, 3, 3}, Index: []int32{1, 2, 3}},
	}
	teach := &nn.CrossEntropy{Labels: []int32{0, 1, 1, 0}}
	for range 60 {
		if _, err := net.Backward(b, teach); err != nil {
			fmt.Println(err)
			return
		}
		if _, err := net.Update(1e-3); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(teach.Right, "of", teach.Counted)
	// Output: 4 of 4
}
