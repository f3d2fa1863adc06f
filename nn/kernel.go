package nn

// Kernel is one fused operation: its arithmetic, without automatic
// differentiation. A kernel belongs to one node of one graph. It may keep state
// from Forward to Backward, but not the matrices it is given.
type Kernel interface {
	// Forward writes all of out. Inputs are matrices; a vector comes as [1,d].
	Forward(c *Context, in []Mat, out Mat)
	// Backward writes all of din[i], the gradient of the loss with respect to
	// in[i], from grad, that with respect to out. din[i].V is nil where the
	// gradient is not wanted. out is what Forward wrote.
	Backward(c *Context, in []Mat, out, grad Mat, din []Mat)
}
