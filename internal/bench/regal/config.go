package regal

import (
	"placer/baselines/regal/rivals"
	"placer/baselines/regal/sched"
	"placer/graph"
	"placer/internal/bench"
	"placer/units"
)

// Config says what is compared, or trained on.
type Config struct {
	Task             rivals.Task
	Graphs           int      // synthetic ones
	Files, Workloads []string // graphs of the other tasks
	Copies           int      // of each of them, augmented
	Devices          int
	Memory           string // of each device, as 16GiB; none; empty: 16GiB for the task time
	GPU              string // built-in machine that gives op times to graphs without their own
	Seed             uint64
	Evaluations      int  // of every search
	Workers          int  // graphs at once
	Long             bool // BRKGA with ten times the evaluations takes part
	NoCPSAT          bool
	CPSATWork        float64  // CP-SAT's limit in its deterministic time
	GAS              string   // file of GAS's weights; empty: it does not take part
	REGAL            []string // files of REGAL's weights; none alone; empty: the program's own
	Out              string   // folder; empty: nothing is kept
	// Load returns the graph of a workload or a file, the one that is not empty, with
	// its op times on the first GPU of a built-in machine.
	Load func(workload, file, gpu string) (*graph.Graph, []units.Seconds, error)
}

// Default returns the paper's settings on synthetic graphs.
func Default() Config {
	return Config{Task: rivals.Synthetic, Graphs: 100, Copies: 99, Devices: 2, GPU: "p100", Seed: 1, Evaluations: 5000, CPSATWork: 10}
}

func (c *Config) synthetic() bool { return c.Task == rivals.Synthetic }

// validate reports the first fault.
func (c *Config) validate() error {
	given := len(c.Files)+len(c.Workloads) > 0
	switch {
	case !c.synthetic() && c.Task != rivals.Time && c.Task != rivals.Memory:
		return bench.ConfigErrorf("--task %s: want synthetic, time or memory", c.Task)
	case c.synthetic() && given:
		return bench.ConfigErrorf("--graph and --workload are for --task time and memory")
	case !c.synthetic() && !given:
		return bench.ConfigErrorf("--task %s needs graphs: --graph or --workload", c.Task)
	case c.Graphs < 1, c.Evaluations < 1, c.Workers < 1, c.Copies < 0, !(c.CPSATWork > 0):
		return bench.ConfigErrorf("--graphs, --evaluations, --workers and --cpsat-work want at least 1, --copies 0")
	case c.Devices < 1 || c.Devices > sched.MaxDevices:
		return bench.ConfigErrorf("--devices %d: want 1 to %d", c.Devices, sched.MaxDevices)
	}
	return nil
}

// machine returns the devices of a valid c.
func (c *Config) machine() (m sched.Machine, err error) {
	m.Devices = c.Devices
	memory := c.Memory
	if memory == "" && c.Task == rivals.Time {
		memory = "16GiB"
	}
	if memory == "" || memory == "none" {
		return m, nil
	}
	b, err := units.ParseBytes(memory)
	if err != nil {
		return m, bench.ConfigError{Err: err}
	}
	m.Memory = int64(b)
	return m, nil
}
