package ppo

import (
	"fmt"
	"math"
	"math/rand/v2"

	"placer/nn"
)

// Sample draws a decision for each row of logits [R,A] from softmax(logits /
// temperature) and writes it into actions [R] and its log probability into
// logProb [R], which may be nil. A masked choice is never drawn. Logits must be finite.
func Sample(logits nn.Mat, temperature float64, r *rand.Rand, actions []int32, logProb []float32) {
	if len(actions) != logits.N || logProb != nil && len(logProb) != logits.N {
		panic(fmt.Sprintf("ppo: %d actions and %d log probabilities for logits %s", len(actions), len(logProb), logits))
	}
	p, x := make([]float64, logits.D), make([]float32, logits.D)
	for i := range actions {
		row := logits.Row(i)
		for a, v := range row {
			x[a] = float32(float64(v) / temperature)
		}
		nn.SoftmaxRow(p, x)
		choice := nn.Draw(p, r)
		if choice < 0 {
			panic(fmt.Sprintf("ppo: row %d of the logits is not finite: %v", i, row))
		}
		actions[i] = choice
		if logProb != nil {
			logProb[i] = float32(math.Log(p[choice]))
		}
	}
}
