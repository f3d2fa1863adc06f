package workloads

import (
	"fmt"

	"placer/graph"
)

// lstmWeights are the variables of one LSTM layer, shared by its time steps.
type lstmWeights struct {
	kernel tensor // [in+H, 4H]
	bias   tensor // [4H]
}

// lstmState is what a step passes to the next one.
type lstmState struct{ c, h tensor } // [B,H] each

func (n *net) lstmVariables(in, hidden int64) lstmWeights {
	return lstmWeights{n.variable("kernel", in+hidden, 4*hidden), n.variable("bias", 4*hidden)}
}

// lstmZero is the state before the first step.
func (n *net) lstmZero(rows tensor, batch, hidden int64) lstmState {
	return lstmState{n.zeros(rows, batch, hidden), n.zeros(rows, batch, hidden)}
}

// lstmCell is one step of tf.nn.rnn_cell.BasicLSTMCell on x, [B,in].
func (n *net) lstmCell(x tensor, s lstmState, w lstmWeights) lstmState {
	gates := n.bias(n.matmul(n.concat(1, x, s.h), w.kernel), w.bias)
	g := n.split(gates, 1, 4) // input, candidate, forget, output
	forget := n.unary("Sigmoid", n.binary("Add", g[2], n.scalar()))
	c := n.binary("Add",
		n.binary("Mul", s.c, forget),
		n.binary("Mul", n.unary("Sigmoid", g[0]), n.unary("Tanh", g[1])))
	h := n.binary("Mul", n.unary("Tanh", c), n.unary("Sigmoid", g[3]))
	return lstmState{c, h}
}

// step cuts one column, [B], out of ids, [B,T].
func (n *net) step(ids tensor) tensor { return n.slice(ids, n.dim(ids, 0)) }

// tokenLoss is sequence_loss_by_example: a softmax over the vocabulary at every
// step, and the cross-entropies of all steps.
type tokenLoss struct {
	w, b            tensor   // [H,V], [V]
	target          tensor   // [B,T]
	losses, weights []tensor // T of [B]
}

// step adds the loss of the next step's x, [B,H]: the cross-entropy against the
// step's targets, times the weight of each.
func (l *tokenLoss) step(n *net, x tensor) {
	logits := n.bias(n.matmul(x, l.w), l.b)
	y := n.step(l.target)
	weight := n.ones(y)
	l.losses = append(l.losses, n.binary("Mul", n.crossEntropy(logits, n.reshape(y, n.dim(logits, 0))), weight))
	l.weights = append(l.weights, weight)
}

// mean adds up the losses and divides by the sum of their weights: the mean
// log-perplexity, averaged over the batch.
func (l *tokenLoss) mean(n *net) {
	total := n.binary("Add", n.addN(l.weights...), n.scalar())
	perplexity := n.binary("RealDiv", n.addN(l.losses...), total)
	sum := n.sumAll("Sum", perplexity)
	n.binary("RealDiv", sum, n.cast(n.batchSize(perplexity), n.dtype))
}

// crossEntropy, [B], of logits, [B,V], is tf.nn.sparse_softmax_cross_entropy_with_logits: it also makes
// the gradient of the logits.
func (n *net) crossEntropy(logits, targets tensor) tensor {
	n.shapeOf(targets) // the function compares ranks by it
	op := n.add("SparseSoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits", []tensor{logits, targets},
		graph.Tensor{DType: n.b.TensorAt(logits).DType, Shape: graph.Shape{n.dim(logits, 0)}, Bytes: graph.Auto}, n.like(logits))
	return n.b.Output(op, 0)
}

// batchSize returns the first dimension of x as a scalar tensor.
func (n *net) batchSize(x tensor) tensor {
	if !n.dynamic {
		return n.axis()
	}
	return n.sliceShape(n.shapeOf(x))
}

func stepName(t int) string { return fmt.Sprintf("step_%d", t) }

// ones are the weights of a step's targets, as many as x has elements: all of
// them count.
func (n *net) ones(x tensor) tensor {
	t := n.of(n.shape(x)...)
	if !n.dynamic {
		return n.constant(t)
	}
	return n.op("Fill", t, n.shapeOf(x), n.scalar())
}
