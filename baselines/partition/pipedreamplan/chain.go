package pipedreamplan

import (
	"fmt"
	"math"
	"strings"

	"placer/graph/formats/pipedream"
)

// Chain is layers in a topological order.
type Chain struct {
	Seconds    []float64 // [L] forward and backward of a minibatch
	Parameters []float64 // [L] bytes
	Crossing   []float64 // [L] bytes that layers 0..l make and later ones read
	Layer      []int     // [L] the profile's number of each
}

// FromProfile returns the layers of x in the order of its graph. Inputs take no
// time and cost nothing to move: every stage can load data.
func FromProfile(x *pipedream.Instance) *Chain {
	c := &Chain{}
	at := make([]int, len(x.Layers))
	for i, l := range x.Layer {
		if x.Backward[i] {
			continue
		}
		at[l] = len(c.Layer)
		c.Layer = append(c.Layer, l)
		c.Seconds = append(c.Seconds, x.Layers[l].Forward+x.Layers[l].Backward)
		c.Parameters = append(c.Parameters, x.Layers[l].Parameters)
	}
	last := make([]int, len(c.Layer)) // reader of each layer
	for l := range x.Layers {
		for _, u := range x.Layers[l].Inputs {
			last[at[u]] = max(last[at[u]], at[l])
		}
	}
	c.Crossing = make([]float64, len(c.Layer))
	for k, l := range c.Layer {
		if strings.HasPrefix(x.Layers[l].Description, "Input") {
			continue
		}
		for b := k; b < last[k]; b++ {
			c.Crossing[b] += x.Layers[l].Activation
		}
	}
	return c
}

// NumLayers returns L.
func (c *Chain) NumLayers() int { return len(c.Seconds) }

// validate reports the first fault.
func (c *Chain) validate() error {
	if len(c.Seconds) == 0 || len(c.Parameters) != len(c.Seconds) || len(c.Crossing) != len(c.Seconds) {
		return fmt.Errorf("chain of %d layers has parameters of %d and boundaries of %d", len(c.Seconds), len(c.Parameters), len(c.Crossing))
	}
	for l := range c.Seconds {
		for _, x := range []float64{c.Seconds[l], c.Parameters[l], c.Crossing[l]} {
			if !(x >= 0) || math.IsInf(x, 0) {
				return fmt.Errorf("layer %d of the chain takes %v s, has %v bytes of parameters and %v that cross", l, c.Seconds[l], c.Parameters[l], c.Crossing[l])
			}
		}
	}
	return nil
}

// Level is workers, or groups of the level below, joined by one kind of link.
type Level struct {
	Width     int
	Bandwidth float64 // bytes a second of each
}

// Stage is layers [From, To) of a chain on Replicas workers.
type Stage struct{ From, To, Replicas int }

// InFlight returns the minibatches that keep a pipeline busy: the workers over the
// replicas of the first stage, rounded up (section 3.2).
func InFlight(stages []Stage) int {
	workers := 0
	for _, s := range stages {
		workers += s.Replicas
	}
	return (workers + stages[0].Replicas - 1) / stages[0].Replicas
}

// Shape returns the replicas of the stages as PipeDream writes them, "15-1";
// "straight" where every stage has one worker, "16" for data parallelism.
func Shape(stages []Stage) string {
	var parts []string
	straight := len(stages) > 1
	for _, s := range stages {
		parts = append(parts, fmt.Sprint(s.Replicas))
		straight = straight && s.Replicas == 1
	}
	if straight {
		return "straight"
	}
	return strings.Join(parts, "-")
}
