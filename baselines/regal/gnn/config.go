package gnn

import (
	"errors"
	"fmt"

	"placer/baselines/regal/propose"
	"placer/baselines/regal/sched"
	"placer/internal/faults"
)

// Config describes the network and its actions.
type Config struct {
	Width    int  // H
	Rounds   int  // T
	Residual bool // h + MLPnode instead of MLPnode
	GRU      bool // a gated recurrent unit instead of MLPnode
	Mean     bool // means of messages instead of sums
	Actions  propose.Space
	// Crossover is the number of levels of the elite bias that the policy chooses
	// for a graph (A.6); 0 leaves the search's own.
	Crossover int
	// Likeliest proposes the likeliest actions instead of drawing them; training
	// always draws.
	Likeliest bool
}

// Agent returns the configuration called name: synthetic, time, memory or deep.
func Agent(name string) (Config, error) {
	switch name {
	case "synthetic":
		return synthetic(), nil
	case "time":
		return runTime(), nil
	case "memory":
		return peakMemory(), nil
	case "deep":
		return deep(), nil
	}
	return Config{}, fmt.Errorf("no agent %s: want synthetic, time, memory or deep", name)
}

// peakMemory returns the paper's agent for peak memory (A.14): 16 rounds, means,
// and k of 2, which makes its 16 placement and 4 scheduling actions of an op.
func peakMemory() Config {
	return Config{Width: 32, Rounds: 16, Mean: true, Actions: propose.Space{Devices: 2, PlaceLevels: 2, OrderLevels: 2}}
}

// runTime returns the paper's agent for the run time of real graphs (A.15): 16
// residual rounds, sums, k of 2 for placement and 16 for scheduling.
func runTime() Config {
	return Config{Width: 32, Rounds: 16, Residual: true, Actions: propose.RunTime(2)}
}

// synthetic returns the paper's agent for synthetic graphs (A.16): 2 rounds with
// gated recurrent units, means.
func synthetic() Config {
	return Config{Width: 32, Rounds: 2, GRU: true, Mean: true, Actions: propose.RunTime(2)}
}

// deep returns an agent of ours for synthetic graphs: 8 residual rounds, so that
// what an op thinks reaches a neighbourhood as wide as the graphs.
func deep() Config {
	return Config{Width: 32, Rounds: 8, Residual: true, Mean: true, Actions: propose.RunTime(2)}
}

// validate reports every fault of c.
func (c Config) validate() error {
	var all faults.List
	a := c.Actions
	all.If(c.Width < 1 || c.Rounds < 0, "gnn: width %d, %d rounds", c.Width, c.Rounds)
	all.If(c.Residual && c.GRU, "gnn: rounds are residual or gated recurrent units, not both")
	all.If(a.Devices < 1 || a.Devices > sched.MaxDevices || a.PlaceLevels < 2 || a.OrderLevels < 2 || a.PlaceLevels > 256 || a.OrderLevels > 256, "gnn: %d devices, %d and %d levels", a.Devices, a.PlaceLevels, a.OrderLevels)
	all.If(c.Crossover != 0 && c.Crossover < 2, "gnn: %d levels of the elite bias, want 0 or at least 2", c.Crossover)
	return errors.Join(all...)
}
