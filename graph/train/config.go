package train

import (
	"errors"
	"fmt"
	"strings"

	"placer/graph"
	"placer/internal/faults"
)

// Optimizer is an update rule.
type Optimizer uint8

// Optimizers.
const (
	SGD      Optimizer = iota // ApplyGradientDescent, no slots
	Momentum                  // ApplyMomentum, one slot of the variable's size
	Adam                      // ApplyAdam, two slots
	numOptimizers
)

var optimizerNames = [numOptimizers]string{"sgd", "momentum", "adam"}

func (o Optimizer) String() string {
	if o < numOptimizers {
		return optimizerNames[o]
	}
	return fmt.Sprintf("Optimizer(%d)", uint8(o))
}

// ParseOptimizer reads a name that String prints.
func ParseOptimizer(s string) (Optimizer, error) {
	for i, n := range optimizerNames {
		if n == s {
			return Optimizer(i), nil
		}
	}
	return 0, fmt.Errorf("unknown optimizer %q, want one of %s", s, strings.Join(optimizerNames[:], ", "))
}

// Config says how a training step is derived.
type Config struct {
	// Optimizer updates every trainable variable that the loss depends on.
	Optimizer Optimizer
	// Loss names the tensors of the forward graph that are differentiated; each
	// gets a gradient of ones of its own shape. Empty means the first float
	// output of each op that nothing reads and a trainable variable leads to:
	// those of one element where there are any, else all.
	Loss []graph.TensorID
	// StaticShapes says that the model was built with every dimension known, the
	// batch included. TensorFlow then writes constants where it otherwise writes
	// Shape ops, and leaves out the broadcasting arithmetic of sums, differences
	// and products of operands of one shape.
	StaticShapes bool
	// GateGradients makes the gradients that one op passes to several inputs
	// wait for each other (a group_deps and an Identity for each), which
	// Optimizer.minimize does. Models that call tf.gradients themselves, as those
	// that clip do, leave it off.
	GateGradients bool
	// ClipGlobalNorm scales all gradients by min(1, limit / norm over all of
	// them), as clip_by_global_norm does: every update waits for every gradient.
	ClipGlobalNorm bool
	// DenseTables gives tables that are looked up in a gradient of their own size, as PyTorch
	// and JAX do. Without it, as TensorFlow has it (IndexedSlices), it is a list of the rows that were
	// looked up, as long as a step has indices.
	DenseTables bool
	// AllGradients adds what TensorFlow's gradient functions write whether or not
	// a variable needs it: the gradient of every float operand (of the first
	// layer's input, of constants), at its true cost, and a ZerosLike, at none,
	// for each further float output of an op that has no gradient.
	AllGradients bool
	// MasterWeights keeps beside each trained variable of f16 or bf16 a copy of it in f32, its
	// master copy, and the optimizer's slots in f32, as mixed-precision training does
	// (Micikevicius et al., arXiv:1710.03740, section 3.1). Variables of other types are
	// updated as without it.
	MasterWeights bool
	// InitOps adds each variable's initializer and Assign, which a GraphDef holds
	// beside the step. They run before the step: their FLOPs, Bytes and tensors
	// are zero.
	InitOps bool
}

// Default returns Adam with gated gradients.
func Default() Config { return Config{Optimizer: Adam, GateGradients: true} }

// Validate reports every fault of c that can be seen without a graph.
func (c Config) Validate() error {
	var errs faults.List
	errs.If(c.Optimizer >= numOptimizers, "optimizer: %v is unknown", c.Optimizer)
	seen := map[graph.TensorID]bool{}
	for i, t := range c.Loss {
		errs.If(t < 0 || seen[t], "loss %d: tensor %d is negative or named twice", i, t)
		seen[t] = true
	}
	return errors.Join(errs...)
}
