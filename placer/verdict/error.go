package verdict

import (
	"placer/hw"
	"placer/placer/problem"
)

// ModelError is how far predicted times are off from measured ones in the mean.
type ModelError struct {
	Share  float64 // 0.05 for 5%
	Source string  // what the figure comes from
}

// Errors of what was never measured here, and of times that were measured on the
// device itself: the largest of the mean errors of a whole step in docs/pytorch.md.
var (
	unmeasured = ModelError{0.103, "assumed: nothing of this device was measured; the largest of the half-precision products in docs/hardware-models.md"}
	fromTimes  = ModelError{0.049, "measured op times: the largest mean error of a step in docs/pytorch.md"}
)

// measured are the errors of devices of which docs/hardware-models.md has half-precision
// products that no constant was fitted to, by architecture.
var measured = map[string]ModelError{
	"sm_80":  {0.076, "A100, phi-2's products by constants of Llama-2's, docs/hardware-models.md"},
	"sm_86":  {0.075, "A40, Llama-2's products by the A100's constants, docs/hardware-models.md"},
	"sm_90":  {0.103, "H100, Llama-2's products by constants of another table, docs/hardware-models.md"},
	"sm_100": {0.046, "B200, unseen products, docs/hardware-models.md"},
}

// ErrorOf returns the model's error for s on m: that of a calibrated machine's own file,
// or the documented one of its devices, the largest of them.
func ErrorOf(s problem.Source, m *hw.Machine) (e ModelError) {
	if s.Times != nil || s.Seconds != nil {
		return fromTimes
	}
	for i := range m.Devices {
		d := &m.Devices[i]
		x, known := measured[d.Arch]
		switch {
		case d.Kind == hw.CPU && i > 0:
			continue // a host behind GPUs: its share of the step is small
		case d.Calibration != nil && d.Calibration.Error > 0:
			x = ModelError{d.Calibration.Error, "the machine file's calibration: " + d.Calibration.Source}
		case !known:
			x = unmeasured
		}
		if x.Share > e.Share {
			e = x
		}
	}
	return e
}
