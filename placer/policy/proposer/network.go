package proposer

import (
	"math/rand/v2"

	"placer/baselines/search/anneal"
	"placer/nn"
	"placer/nn/vec"
	"placer/plan"
)

// Network says of a move how likely it shortens the step, and by how much if it does:
//
//	h = relu(W1 x + b1), k = relu(W2 h + b2), (z, g) = W3 k + b3
//
// z is the logit of the likelihood, g the logarithm of the gain. It ranks by
// log likelihood + greed g.
type Network struct {
	params                 *nn.Params
	w1, b1, w2, b2, w3, b3 *nn.Param
	features, hidden       int
	tasks                  plan.Tasks
	Greed                  float32 // weight of the gain's logarithm beside the log likelihood
	Card                   Card
}

const mostHidden = 128

// outputs are the likelihood's logit and the gain's logarithm.
const outputs = 2

// New returns a network of random weights for moves that decide on tasks: plan.Place or
// plan.AllTasks. hidden is H, at most mostHidden.
func New(tasks plan.Tasks, hidden int, random *rand.Rand) *Network {
	ps := nn.NewParams()
	n := &Network{params: ps, features: len(featuresOf(tasks)), hidden: hidden, tasks: tasks, Greed: 0.5}
	n.w1, n.b1 = ps.Glorot("first", random, n.features, hidden), ps.Constant("first_bias", 0, 1, hidden)
	n.w2, n.b2 = ps.Glorot("second", random, hidden, hidden), ps.Constant("second_bias", 0, 1, hidden)
	n.w3, n.b3 = ps.Normal("last", random, 0.01, hidden, outputs), ps.Constant("last_bias", 0, 1, outputs)
	return n
}

// Tasks returns what the moves that n ranks decide on: placement alone, or all.
func (n *Network) Tasks() plan.Tasks { return n.tasks }

// featuresOf returns the names of the features of moves that decide on tasks, [F].
func featuresOf(tasks plan.Tasks) []string {
	if tasks == plan.Place {
		return anneal.MoveFeatureNames()
	}
	return anneal.JointFeatureNames()
}

// Rank is as anneal.Guide says.
func (n *Network) Rank(x, score []float32) {
	var a, b [mostHidden]float32
	h, k := a[:n.hidden], b[:n.hidden]
	for m := range score {
		clear(h)
		for f, v := range x[m*n.features : (m+1)*n.features] {
			if v != 0 {
				vec.Axpy(h, n.w1.Value[f*n.hidden:(f+1)*n.hidden], v)
			}
		}
		vec.ReluBias(h, n.b1.Value)
		clear(k)
		for f, v := range h {
			if v != 0 {
				vec.Axpy(k, n.w2.Value[f*n.hidden:(f+1)*n.hidden], v)
			}
		}
		vec.ReluBias(k, n.b2.Value)
		z, g := n.b3.Value[0], n.b3.Value[1]
		for f, v := range k {
			z += v * n.w3.Value[f*outputs]
			g += v * n.w3.Value[f*outputs+1]
		}
		score[m] = logSigmoid(z) + n.Greed*g
	}
}
