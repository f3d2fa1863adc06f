// Package seq2seq owns the attentional sequence-to-sequence policy of the
// recurrent device placers (RL-2017, section 3.2; HDP, section 3): a
// bidirectional LSTM reads T items, a decoder LSTM names a choice for one item
// after another, each time told its choice before, and looks back at all items by
// attention.
//
// A Session samples K decisions side by side, step by step, and computes the
// gradient of an objective over sampled decisions in one pass through a graph of
// fused operations:
//
//	net := seq2seq.New(seq2seq.Config{Features: f, Width: 64, Choices: a, Aligned: true}, params, random)
//	s, err := net.Session(backend, seq2seq.Shape{Items: items, Samples: samples, Sequences: 1})
//	s.Sample(x, random, actions, logProb)
//	s.Backward(x, actions, objective)   // gradients into params
//
// Letters: T items, K samples, M sequences, F features, H width, A choices.
package seq2seq
