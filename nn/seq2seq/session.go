package seq2seq

import (
	"fmt"
	"math"
	"math/rand/v2"

	"placer/nn"
	"placer/nn/vec"
)

// Shape is what a Session is made for.
type Shape struct {
	Items     int // T, of a sequence
	Samples   int // K, decisions side by side
	Sequences int // M, that x stacks: 1, which all samples are about, or K, of one each
}

// Session is a network for one shape.
type Session struct {
	Shape
	net *Network

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

// Session compiles the network for a shape.
func (n *Network) Session(b *nn.Backend, of Shape) (*Session, error) {
	if of.Items < 1 || of.Samples < 1 || of.Sequences != 1 && of.Sequences != of.Samples {
		return nil, fmt.Errorf("seq2seq: %d items and %d samples about %d sequences, want at least 1, about 1 or as many", of.Items, of.Samples, of.Sequences)
	}
	c := n.config
	s := &Session{Shape: of, net: n, context: nn.NewContext(b)}

	s.encoder = nn.NewGraph(b)
	s.encoderIn = s.encoder.Input("items", of.Sequences*of.Items, c.Features)
	if err := s.encoder.Compile(false, outputs(n.encode(s.encoder, s.encoderIn, of.Sequences))...); err != nil {
		return nil, err
	}
	s.trainer = nn.NewGraph(b)
	s.trainerIn = s.trainer.Input("items", of.Sequences*of.Items, c.Features)
	memory, gates := n.encode(s.trainer, s.trainerIn, of.Sequences)
	if err := s.trainer.Compile(true, n.logits(s.trainer, memory, gates, of, &s.told)); err != nil {
		return nil, err
	}

	h := c.Width
	s.told = make([]int32, of.Samples*of.Items)
	s.gates, s.logits = nn.NewMat(of.Samples, 4*h), nn.NewMat(of.Samples, c.Choices)
	for _, m := range []*nn.Mat{&s.state, &s.query, &s.cell, &s.next, &s.squeeze, &s.seen} {
		*m = nn.NewMat(of.Samples, h)
	}
	s.weights, s.zero, s.probability = make([]float32, of.Items), make([]float32, 3*h), make([]float64, c.Choices)
	return s, nil
}

// outputs leaves out a parameter, which is no output.
func outputs(memory, gates *nn.Node) []*nn.Node {
	if gates.Shape()[0] != memory.Shape()[0] {
		return []*nn.Node{memory}
	}
	return []*nn.Node{memory, gates}
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
	for t := range s.Items {
		s.step(t, actions)
		for k := range s.Samples {
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
	for k := range s.Samples {
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
	s.context.Gemm(false, false, s.Samples, 4*h, h, s.state.V, h, n.decode.Value, 4*h, 1, s.gates.V, 4*h)
	for k := range s.Samples {
		nn.LSTMStep(s.gates.Row(k), s.cell.Row(k), s.next.Row(k), s.squeeze.Row(k), s.state.Row(k), s.zero)
	}
	s.cell, s.next = s.next, s.cell
	s.affine(n.query, s.query, s.state)
	for k := range s.Samples {
		rows := s.memory.Rows(s.first(k), s.first(k)+s.Items)
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
	if s.Sequences == 1 {
		return 0
	}
	return k * s.Items
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
	if len(actions) != s.Samples {
		panic(fmt.Sprintf("seq2seq: %d decisions for a session of %d", len(actions), s.Samples))
	}
	s.trainer.SetInput(s.trainerIn, x)
	for k, a := range actions {
		told := s.told[k*s.Items : (k+1)*s.Items]
		told[0] = int32(s.net.config.Choices)
		copy(told[1:], a)
	}
	return s.trainer.Run(o)
}
