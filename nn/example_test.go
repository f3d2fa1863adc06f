package nn_test

import (
	"fmt"

	"placer/nn"
)

// Example fits a line by gradient descent.
func Example() {
	backend, err := nn.NewBackend(nn.Config{Libraries: []string{}, Workers: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	ps := nn.NewParams()
	slope, offset := ps.Constant("slope", 0, 1, 1), ps.Constant("offset", 0, 1)
	g := nn.NewGraph(backend)
	x := g.Input("x", 3, 1)
	y := g.Linear(nn.Identity, []*nn.Node{x}, []*nn.Param{slope}, offset)
	if err := g.Compile(true, y); err != nil {
		fmt.Println(err)
		return
	}
	g.SetInput(x, nn.Mat{N: 3, D: 1, V: []float32{-1, 0, 1}})
	adam := nn.NewAdam(nn.DefaultAdam())
	for range 1000 {
		if _, err := g.Run(squaredError{-1, 1, 3}); err != nil { // 2x + 1
			fmt.Println(err)
			return
		}
		if _, err := adam.Step(ps, 0.02); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Printf("%.2f x + %.2f\n", slope.Value[0], offset.Value[0])
	// Output: 2.00 x + 1.00
}

// squaredError is an nn.Objective: the mean of (y - target)² over the rows.
type squaredError []float32

func (target squaredError) Loss(_ *nn.Context, outputs, gradients []nn.Mat) (loss float64) {
	for i, t := range target {
		e, n := outputs[0].V[i]-t, float32(len(target))
		loss += float64(e * e / n)
		gradients[0].V[i] += 2 * e / n
	}
	return loss
}
