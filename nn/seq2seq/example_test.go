package seq2seq_test

import (
	"fmt"
	"math/rand/v2"

	"placer/nn"
	"placer/nn/seq2seq"
	"placer/ppo"
)

// A policy learns by REINFORCE to name the sign of each item.
func Example() {
	backend, err := nn.NewBackend(nn.Default())
	if err != nil {
		panic(err)
	}
	const items, samples = 12, 8
	r := rand.New(rand.NewPCG(1, 2))
	params := nn.NewParams()
	net := seq2seq.New(seq2seq.Config{Features: 1, Width: 16, Choices: 2, Aligned: true}, params, r)
	s, err := net.Session(backend, seq2seq.Shape{Items: items, Samples: samples, Sequences: 1})
	if err != nil {
		panic(err)
	}
	x := nn.NewMat(items, 1)
	for i := range items {
		x.V[i] = float32(i%3) - 1
	}
	o := &ppo.Objective{ClipEps: 0.2, Entropy: 0.01}
	for range samples {
		o.Actions, o.LogProb = append(o.Actions, make([]int32, items)), append(o.LogProb, make([]float32, items))
	}
	adam := nn.NewAdam(nn.DefaultAdam())
	rewards, advantage := make([]float32, samples), make([]float32, samples)
	round := func() (mean float32) {
		if err := s.Sample(x, r, o.Actions, o.LogProb); err != nil {
			panic(err)
		}
		for k, a := range o.Actions {
			rewards[k] = 0
			for i, c := range a {
				if (x.V[i] > 0) == (c == 1) {
					rewards[k] += 1. / items
				}
			}
			mean += rewards[k] / samples
		}
		ppo.Standardise(advantage, rewards)
		o.Advantage = o.Advantage[:0]
		for k := range samples {
			o.Advantage = append(o.Advantage, advantage[k:k+1])
		}
		if _, err := s.Backward(x, o.Actions, o); err != nil {
			panic(err)
		}
		if _, err := adam.Step(params, 1e-2); err != nil {
			panic(err)
		}
		return mean
	}
	first := round()
	for range 100 {
		round()
	}
	fmt.Println("right at first, about half:", first > 0.3 && first < 0.7)
	fmt.Println("right after 100 rounds, nearly all:", round() > 0.95)
	// Output:
	// right at first, about half: true
	// right after 100 rounds, nearly all: true
}
