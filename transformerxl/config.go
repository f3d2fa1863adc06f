package transformerxl

import (
	"errors"

	"placer/internal/faults"
)

// Config describes a Network.
type Config struct {
	Width     int // d, of the embedding and of the layers
	Layers    int // besides the modulation layer
	Heads     int
	HeadWidth int // columns of each head
	Inner     int // width of the feed-forward layer
	Segment   int // rows of a segment
	Memory    int // rows of the segment before that are attended to; 0: no recurrence
	// Attention turns the layers' and the head's attention on. Without it each row
	// is decided on its own, from its embedding: the ablation of GDP, section 4.
	Attention bool
	// Modulation multiplies the input of each layer with the features of one
	// more transformer layer (parameter superposition).
	Modulation bool
	// ModulateDense moves the modulation from the input of each layer (GO, section
	// 4.3) to that of its feed-forward network, its dense layers (GDP, Eq. 5).
	ModulateDense bool
	// The tasks and their choices; at least one is decided.
	Choices        int // devices that placement chooses from; 0: no placement
	ScheduleLevels int // s, levels of scheduling priority; 0: no scheduling
	FusionLevels   int // f, levels of fusion priority; 0: no fusion
	// FusionKinds is the number of fusion priorities of a node, each with levels of
	// its own; 0 means 1, as in the paper.
	FusionKinds int
	// HeadResidual adds the head's input to the result of its attention, before
	// layer normalisation. The paper has the attention's result alone.
	HeadResidual bool
	// TasksApart decides every task from the last layer's states, as the first one is:
	// no recurrence over the tasks.
	TasksApart bool `json:",omitempty"`
}

// Default returns the sizes of GDP, tables 3 and 4, for logits of choices
// columns, with a residual connection in the head.
func Default(choices int) Config {
	return Config{Width: 128, Layers: 2, Heads: 5, HeadWidth: 25, Inner: 256, Segment: 256, Memory: 256, Attention: true, Modulation: true, Choices: choices, HeadResidual: true}
}

// Validate reports every fault of c.
func (c Config) Validate() error {
	var all faults.List
	for _, f := range []struct {
		name   string
		v, low int
	}{{"width", c.Width, 1}, {"layers", c.Layers, 1}, {"heads", c.Heads, 1}, {"head width", c.HeadWidth, 1}, {"inner width", c.Inner, 1}, {"segment", c.Segment, 1}, {"memory", c.Memory, 0}, {"choices", c.Choices, 0}, {"schedule levels", c.ScheduleLevels, 0}, {"fusion levels", c.FusionLevels, 0}, {"fusion kinds", c.FusionKinds, 0}} {
		all.If(f.v < f.low, "transformerxl: %s is %d, want at least %d", f.name, f.v, f.low)
	}
	all.If(c.Memory > c.Segment, "transformerxl: memory of %d rows exceeds the segment of %d", c.Memory, c.Segment)
	all.If(len(c.Tasks()) == 0, "transformerxl: no task: choices, schedule levels and fusion levels are all 0")
	return errors.Join(all...)
}

// Task is an action space: Kinds choices per node, each among Levels.
type Task struct {
	Name          string // Placement, Scheduling or Fusion
	Kinds, Levels int
}

// Names of the tasks, in the order in which they are decided.
const (
	Placement  = "placement"
	Scheduling = "scheduling"
	Fusion     = "fusion"
)

// Columns returns the number of a node's logits.
func (t Task) Columns() int { return t.Kinds * t.Levels }

// Tasks returns the tasks to decide, in order (GO, section 4.4).
func (c Config) Tasks() (all []Task) {
	for _, t := range []Task{{Placement, 1, c.Choices}, {Scheduling, 1, c.ScheduleLevels}, {Fusion, max(c.FusionKinds, 1), c.FusionLevels}} {
		if t.Levels > 0 {
			all = append(all, t)
		}
	}
	return all
}
