package graph

// RecurrentStep returns the product of one step of a recurrent layer, for so many
// directions at once: the states of a batch, hidden numbers each, by the weights of the
// gates; zero where a dimension is empty. The product of the layer's input, input numbers
// a row, is in it. Libraries compute that for all steps at once (cuDNN; Appleyard, Kocisky
// and Blunsom, arXiv:1604.01946), so a step's share of it is more rows of a product that
// runs anyway, or more columns where the rows do not come out even.
func RecurrentStep(directions, batch, gates, hidden, input int64) GEMM {
	if min(directions, batch, gates, hidden) < 1 || input < 0 {
		return GEMM{}
	}
	if batch*input%hidden == 0 {
		return GEMM{Batch: directions, M: batch + batch*input/hidden, N: gates * hidden, K: hidden}
	}
	return GEMM{Batch: directions, M: batch, N: gates * (hidden + input), K: hidden}
}
