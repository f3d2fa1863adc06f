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
package nn
