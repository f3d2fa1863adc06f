// Package nn owns the learning engine: parameters, a differentiable graph of
// fused operations, the optimiser and checkpoints.
//
// A Graph records operations over all N rows of a batch. Each is a Kernel of ours
// that handles whole matrices, forward and backward, on the row kernels of nn/vec
// and the matrix product of nn/blas. A gorgonia expression graph orders them and
// derives the backward pass (expression), or a tape in the light program (tape), or
// a Device has them all, as a Program. A Graph is built for fixed
// shapes; the data it reads (adjacency, actions, masks) hangs on pointers, so one
// graph serves many runs. Graphs of different shapes share the same Params.
//
//	g := nn.NewGraph(backend)
//	x := g.Input("x", n, 64)
//	y := g.Linear(nn.Relu, []*nn.Node{x}, []*nn.Param{w}, b)
//	err := g.Compile(true, y)           // derives the backward pass
//	g.SetInput(x, data)
//	loss, err := g.Run(objective)       // adds the gradients to each Param's Grad
//
// Results depend on the seed, the machine and the matrix product in use, but not
// on the number of workers: work is cut into the same pieces and partial sums
// are added in the same order whatever their number.
//
// Letters: N rows, D or d columns, F features.
//
// The files from the matrix up: mat.go; kernel.go, context.go and backend.go are what an
// operation is and is given; params.go has the weights. graph.go records operations: linear.go
// and affine.go, norm.go, lstm.go, attend.go, concat.go, repeat.go, mul.go, pool.go, mask.go;
// losses.go and softmax.go are what objectives need. expression.go and fused.go run a graph by
// gorgonia, tape.go by a list (tape_light.go chooses it), recording.go and layout.go lay out
// the memory of that, device.go hands a graph to a Device. adam.go is the optimiser,
// checkpoint.go the file, cache.go keeps compiled graphs by their shapes.
package nn
