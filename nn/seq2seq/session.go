package seq2seq

import (
	"fmt"
	"math"
	"math/rand/v2"

	"placer/nn"
	"placer/nn/vec"
)

// Session is a network for sequences of one length and one number of samples.
type Session struct {
	net     *Network
	items   int
	samples int
	shared  bool

	encoder, trainer     *nn.Graph
	encoderIn, trainerIn *nn.Node
	context              *nn.Context
	told                 []int32 // [KT]
	gates, state, query  nn.Mat  // [K,4H], [K,H], [K,H]
	cell, next, squeeze  nn.Mat  // [K,H]
	seen, logits         nn.Mat  // [K,H], [K,A]
	memory, added        nn.Mat  // of the last run of the encoder: [MT,H], [MT,4H]
	weights, zero        []float32
	probability          []float64 // [A]
}

// Session compiles the network for samples decisions about items items. shared
// says that all samples are about the same sequence; else each has its own.
func (n *Network) Session(b *nn.Backend, items, samples int, shared bool) (*Session, error) {
	if items < 1 || samples < 1 {
		return nil, fmt.Errorf("seq2seq: %d items and %d samples, want at least 1", items, samples)
	}
	c := n.config
	s := &Session{net: n, items: items, samples: samples, shared: shared, context: nn.NewContext(b)}
	sequences := s.Sequences()

	s.encoder = nn.NewGraph(b)
	s.encoderIn = s.encoder.Input("items", sequences*items, c.Features)
	if err := s.encoder.Compile(false, outputs(n.encode(s.encoder, s.encoderIn, sequences))...); err != nil {
		return nil, err
	}
	s.trainer = nn.NewGraph(b)
	s.trainerIn = s.trainer.Input("items", sequences*items, c.Features)
	memory, gates := n.encode(s.trainer, s.trainerIn, sequences)
	if err := s.trainer.Compile(true, n.logits(s.trainer, memory, gates, samples*items, samples, shared, &s.told)); err != nil {
		return nil, err
	}

	h := c.Width
	s.told = make([]int32, samples*items)
	s.gates, s.logits = nn.NewMat(samples, 4*h), nn.NewMat(samples, c.Choices)
	for _, m := range []*nn.Mat{&s.state, &s.query, &s.cell, &s.next, &s.squeeze, &s.seen} {
		*m = nn.NewMat(samples, h)
	}
	s.weights, s.zero, s.probability = make([]float32, items), make([]float32, 3*h), make([]float64, c.Choices)
	return s, nil
}

// outputs leaves out a parameter, which is no output.
func outputs(memory, gates *nn.Node) []*nn.Node {
	if gates.Shape()[0] != memory.Shape()[0] {
		return []*nn.Node{memory}
	}
	return []*nn.Node{memory, gates}
}

// Sequences returns M, the number of sequences that x stacks: 1 or K.
func (s *Session) Sequences() int {
	if s.shared {
		return 1
	}
	return s.samples
}

// Sample draws K decisions about x [MT,F] and writes them, [K][T], and the
// logarithm of each choice's probability, [K][T].
func (s *Session) Sample(x nn.Mat, r *rand.Rand, actions [][]int32, logProb [][]float32) error {
	s.encoder.SetInput(s.encoderIn, x)
	if _, err := s.encoder.Run(nil); err != nil {
		return err
	}
	s.memory = s.encoder.Output(0)
	if s.net.config.Aligned {
		s.added = s.encoder.Output(1)
	}
	clear(s.state.V)
	clear(s.cell.V)
	for t := range s.items {
		s.step(t, actions)
		for k := range s.samples {
			nn.SoftmaxRow(s.probability, s.logits.Row(k))
			a := nn.Draw(s.probability, r)
			if a < 0 {
				return fmt.Errorf("seq2seq: the logits of item %d are not finite: %v", t, s.logits.Row(k))
			}
			actions[k][t], logProb[k][t] = a, float32(math.Log(s.probability[a]))
		}
	}
	return nil
}

// step advances the decoders of all samples to item t and leaves the logits.
func (s *Session) step(t int, actions [][]int32) {
	n, h := s.net, s.net.config.Width
	for k := range s.samples {
		told := n.config.Choices
		if t > 0 {
			told = int(actions[k][t-1])
		}
		own := n.align.B.Value
		if n.config.Aligned {
			own = s.added.Row(s.first(k) + t)
		}
		vec.Add(s.gates.Row(k), own, n.told.Value[told*4*h:(told+1)*4*h])
	}
	s.context.Gemm(false, false, s.samples, 4*h, h, s.state.V, h, n.decode.Value, 4*h, 1, s.gates.V, 4*h)
	for k := range s.samples {
		nn.LSTMStep(s.gates.Row(k), s.cell.Row(k), s.next.Row(k), s.squeeze.Row(k), s.state.Row(k), s.zero)
	}
	s.cell, s.next = s.next, s.cell
	s.affine(n.query, s.query, s.state)
	for k := range s.samples {
		rows := s.memory.Rows(s.first(k), s.first(k)+s.items)
		for i := range s.weights {
			s.weights[i] = vec.Dot(s.query.Row(k), rows.Row(i))
		}
		nn.Softmax(s.weights)
		seen := s.seen.Row(k)
		clear(seen)
		for i, w := range s.weights {
			vec.Axpy(seen, rows.Row(i), w)
		}
	}
	s.affine(n.choose, s.logits, s.seen, s.state)
}

// first returns the first row of sample k's sequence.
func (s *Session) first(k int) int {
	if s.shared {
		return 0
	}
	return k * s.items
}

// affine writes the map of xs into y.
func (s *Session) affine(a nn.Affine, y nn.Mat, xs ...nn.Mat) {
	for r := range y.N {
		copy(y.Row(r), a.B.Value)
	}
	for i, x := range xs {
		s.context.Gemm(false, false, y.N, y.D, x.D, x.V, x.D, a.W[i].Value, y.D, 1, y.V, y.D)
	}
}

// Backward adds the gradient of o, an objective over the logits [KT,A] of the
// decisions actions, [K][T], about x, to the parameters' and returns its value.
func (s *Session) Backward(x nn.Mat, actions [][]int32, o nn.Objective) (float64, error) {
	if len(actions) != s.samples {
		panic(fmt.Sprintf("seq2seq: %d decisions for a session of %d", len(actions), s.samples))
	}
	s.trainer.SetInput(s.trainerIn, x)
	for k, a := range actions {
		told := s.told[k*s.items : (k+1)*s.items]
		told[0] = int32(s.net.config.Choices)
		copy(told[1:], a)
	}
	return s.trainer.Run(o)
}
