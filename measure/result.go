package measure

import (
	"placer/hw/nvml"
	"placer/roofline"
	"placer/sim"
	"placer/units"
)

// Result is a measured step.
type Result struct {
	// Result is in the simulator's form: the makespan is the median step; busy times,
	// the links' use and the trace are those of the traced step. It has no critical
	// path.
	sim.Result
	Mode Mode
	// Predicted is the simulator's step.
	Predicted units.Seconds
	Steps     []units.Seconds // timed, in order
	// Issue is the median time in which the host issues an eager step: where it is
	// most of the step, the step is the host's.
	Issue units.Seconds
	// Slab is how many bytes of each device's slab the layout needs, [D].
	Slab []units.Bytes
	// Traced is the step in which ops were timed; 0 without one.
	Traced  units.Seconds
	Classes []classTime
	// SMs are the multiprocessors of each device's own, [D]; 0 for all of its GPU.
	SMs    []int
	States []nvml.State // of the GPU that the first device stands on
	Notes  []string
}

// classTime compares the ops of one class: measured in the traced step, predicted
// by the cost model.
type classTime struct {
	Class     string
	Ops       int
	Measured  units.Seconds // sum
	Predicted units.Seconds // sum
	roofline.Report
}
