package proposer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"placer/internal/faults"
	"placer/nn"
	"placer/nn/vec"
	"placer/placer/corpus/families"
	"placer/plan"
)

// Config describes the training of a network.
type Config struct {
	// Problems are searched, each within Evaluations; those of HeldOut families and their
	// kin are left out.
	Problems, Evaluations int
	HeldOut               []string
	Tasks                 plan.Tasks // that moves decide on: placement alone, or all
	Hidden                int        // H
	Epochs                int        // passes over all moves
	Rate                  float64    // learning rate, falling to a tenth
	Seed                  uint64
}

// Default returns the configuration of the built-in network of moves that decide on tasks.
func Default(tasks plan.Tasks) Config {
	c := Config{Problems: 182, Evaluations: 3000, Hidden: 64, Epochs: 12, Rate: 2e-3, Seed: 7, Tasks: tasks}
	if tasks != plan.Place { // of which half place alone
		c.Evaluations = 4000
	}
	return c
}

// Validate reports every fault.
func (c Config) Validate() error {
	var errs faults.List
	errs = append(errs, families.Known(c.HeldOut))
	errs.If(c.Problems < 1 || c.Evaluations < 1 || c.Epochs < 1, "moves: %d problems, %d evaluations and %d epochs, want at least 1", c.Problems, c.Evaluations, c.Epochs)
	errs.If(c.Hidden < 1 || c.Hidden > mostHidden, "moves: %d hidden, want 1 to %d", c.Hidden, mostHidden)
	errs.If(c.Tasks != plan.Place && c.Tasks != plan.AllTasks, "moves: tasks are %v, want %v or %v", c.Tasks, plan.Place, plan.AllTasks)
	errs.If(!(c.Rate > 0), "moves: learning rate %g, want more than 0", c.Rate)
	return errors.Join(errs...)
}

// Host is what training uses of its surroundings.
type Host struct {
	// Collect returns what is learned from a problem; nil stands for the function Collect.
	Collect func(ctx context.Context, index int) (*Sample, error)
	// Report, if not nil, is told of every problem and every epoch.
	Report func(Progress)
}

// Progress is a problem collected, or a pass over the moves that were.
type Progress struct {
	Problem, Moves int
	Epoch          int // from 1; 0 while problems are collected
	Loss           float64
}

// Train collects moves and trains a network on those of families that are not held out.
func Train(ctx context.Context, c Config, h Host) (*Network, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if h.Report == nil {
		h.Report = func(Progress) {}
	}
	n := New(c.Tasks, c.Hidden, rand.New(rand.NewPCG(plan.StreamSeed(c.Seed, "moves weights"), 0)))
	n.Card.HeldOut = c.HeldOut
	all, err := n.collect(ctx, c, h)
	if err != nil {
		return nil, err
	}
	t, err := newTraining(n, all)
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(plan.StreamSeed(c.Seed, "moves order"), 0))
	for e := range c.Epochs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		loss, err := t.epoch(random, func(done float64) float64 { return c.Rate * (1 - 0.9*(float64(e)+done)/float64(c.Epochs)) })
		if err != nil {
			return nil, err
		}
		h.Report(Progress{c.Problems, n.Card.Moves, e + 1, loss})
	}
	return n, nil
}

// collect gathers the moves of problems of families that are not held out, and notes on n's
// card what they are.
func (n *Network) collect(ctx context.Context, c Config, h Host) (*Moves, error) {
	if h.Collect == nil {
		h.Collect = func(ctx context.Context, index int) (*Sample, error) {
			return Collect(ctx, c.Tasks, c.Seed, index, c.Evaluations)
		}
	}
	all := &Moves{}
	for i := range c.Problems {
		s, err := h.Collect(ctx, i)
		if err != nil {
			return nil, err
		}
		if !families.Out(s.Families, c.HeldOut) {
			all.X, all.Gain = append(all.X, s.X...), append(all.Gain, s.Gain...)
			n.Card.Graphs++
			n.Card.Trained = append(n.Card.Trained, s.Families...)
		}
		h.Report(Progress{Problem: i + 1, Moves: len(all.Gain)})
	}
	slices.Sort(n.Card.Trained)
	n.Card.Trained, n.Card.Moves = slices.Compact(n.Card.Trained), len(all.Gain)
	if n.Card.Moves == 0 {
		return nil, fmt.Errorf("moves: no move of %d problems is left to learn from", c.Problems)
	}
	return all, nil
}

// training is a network in training. Letters: B moves of a batch.
type training struct {
	*Network
	moves   *Moves
	adam    *nn.Adam
	backend *nn.Backend
	order   []int
	x       []float32 // [B,F]
	h, k, z []float32 // [B,H], [B,H], [B,outputs]
	dh, dk  []float32
	dz      []float32
}

// mostBatch is the largest B.
const mostBatch = 512

// referenceGain is the gain whose logarithm is 0 to the network, and gainWeight what the
// squared error of that logarithm counts beside the cross entropy.
const (
	referenceGain = 1e-3
	gainWeight    = 0.05
)

func newTraining(n *Network, d *Moves) (*training, error) {
	backend, err := nn.NewBackend(nn.Default())
	if err != nil {
		return nil, err
	}
	b, f, h := min(mostBatch, len(d.Gain)), n.features, n.hidden
	floats := func(d int) []float32 { return make([]float32, b*d) }
	t := &training{Network: n, moves: d, adam: nn.NewAdam(nn.DefaultAdam()), backend: backend, order: make([]int, len(d.Gain)), x: floats(f), h: floats(h), k: floats(h), z: floats(outputs), dh: floats(h), dk: floats(h), dz: floats(outputs)}
	for i := range t.order {
		t.order[i] = i
	}
	return t, nil
}

// epoch goes over all moves once, in a random order and whole batches, at a rate that
// depends on the share done, and returns the mean loss.
func (t *training) epoch(random *rand.Rand, rate func(done float64) float64) (loss float64, err error) {
	m, b := len(t.order), len(t.z)/outputs
	random.Shuffle(m, func(i, k int) { t.order[i], t.order[k] = t.order[k], t.order[i] })
	for lo := 0; lo+b <= m; lo += b {
		t.forward(t.order[lo : lo+b])
		loss += t.loss(t.order[lo : lo+b])
		t.backward()
		if _, err := t.adam.Step(t.params, rate(float64(lo)/float64(m))); err != nil {
			return 0, fmt.Errorf("moves: %w", err)
		}
	}
	return loss / float64(m/b*b), nil
}

// forward computes the outputs of moves, but for the last layer's bias.
func (t *training) forward(of []int) {
	f, b := t.features, len(of)
	for i, m := range of {
		copy(t.x[i*f:(i+1)*f], t.moves.X[m*f:(m+1)*f])
	}
	layer := func(x []float32, in int, w, bias *nn.Param, y []float32) {
		t.backend.Gemm(false, false, b, t.hidden, in, x, in, w.Value, t.hidden, 0, y, t.hidden)
		for i := range b {
			vec.ReluBias(y[i*t.hidden:(i+1)*t.hidden], bias.Value)
		}
	}
	layer(t.x, f, t.w1, t.b1, t.h)
	layer(t.h, t.hidden, t.w2, t.b2, t.k)
	t.backend.Gemm(false, false, b, outputs, t.hidden, t.k, t.hidden, t.w3.Value, outputs, 0, t.z, outputs)
}

// loss returns the sum over moves of the cross entropy of whether they bring something
// and, of those that do, the squared error of the gain's logarithm. It leaves the mean's
// gradient in dz.
func (t *training) loss(of []int) (sum float64) {
	scale := 1 / float32(len(of))
	for i, m := range of {
		gain := t.moves.Gain[m]
		z, g := t.z[i*outputs]+t.b3.Value[0], t.z[i*outputs+1]+t.b3.Value[1]
		d := t.dz[i*outputs : (i+1)*outputs]
		if gain > 0 {
			e := g - float32(math.Log(float64(gain)/referenceGain))
			sum += gainWeight*float64(e*e) - float64(logSigmoid(z))
			d[0], d[1] = (vec.Sigmoid(z)-1)*scale, 2*gainWeight*e*scale
		} else {
			sum -= float64(logSigmoid(-z))
			d[0], d[1] = vec.Sigmoid(z)*scale, 0
		}
	}
	return sum
}

// backward adds the gradients of the weights.
func (t *training) backward() {
	f, h, b := t.features, t.hidden, len(t.z)/outputs
	for i := range b {
		vec.Add(t.b3.Grad, t.b3.Grad, t.dz[i*outputs:(i+1)*outputs])
	}
	back := func(x []float32, in int, y, dy []float32, w, bias *nn.Param) {
		for i := range b {
			row := dy[i*h : (i+1)*h]
			vec.ReluBack(row, y[i*h:(i+1)*h], row)
			vec.Add(bias.Grad, bias.Grad, row)
		}
		t.backend.Gemm(true, false, in, h, b, x, in, dy, h, 1, w.Grad, h)
	}
	t.backend.Gemm(true, false, h, outputs, b, t.k, h, t.dz, outputs, 1, t.w3.Grad, outputs)
	t.backend.Gemm(false, true, b, h, outputs, t.dz, outputs, t.w3.Value, outputs, 0, t.dk, h)
	back(t.h, h, t.k, t.dk, t.w2, t.b2)
	t.backend.Gemm(false, true, b, h, h, t.dk, h, t.w2.Value, h, 0, t.dh, h)
	back(t.x, f, t.h, t.dh, t.w1, t.b1)
}

// logSigmoid returns log sigmoid(z) without overflow.
func logSigmoid(z float32) float32 {
	return min(z, 0) - float32(math.Log1p(math.Exp(-math.Abs(float64(z)))))
}
