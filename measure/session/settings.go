package session

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"placer/hw/gpu"
	"placer/internal/faults"
	"placer/internal/jsonx"
	"placer/measure"
	"placer/plan"
)

// Settings say how a step is measured. Measurements under different settings are
// not compared.
type Settings struct {
	Mode    string `json:"mode"`    // eager or graph
	Repeats int    `json:"repeats"` // timed steps behind a first one, of which the median counts
	// Runtime is what runs a step: kernels of each op's shapes on GPUs where it is empty,
	// or Torch, whose Repeats are the steps of each of two rounds, of which the least
	// counts. Clock and Realtime are Torch's alone.
	Runtime   string `json:"runtime,omitempty"`
	Clock     string `json:"clock,omitempty"`    // Virtual or Wall; where empty Virtual, with GPUs Wall
	Realtime  bool   `json:"realtime,omitempty"` // keep other processes off the cores
	Logical   bool   `json:"logical,omitempty"`
	Partition bool   `json:"partition,omitempty"`
	// Contention is the simulator's, whose order of ops is run.
	Contention string `json:"contention,omitempty"`
	// Order identifies the op times that the order follows from (see Order).
	Order string `json:"order"`
}

// Torch is the runtime that runs captured steps of PyTorch; its clocks are Virtual,
// processor time, and Wall.
const (
	Torch   = "torch"
	Virtual = "virtual"
	Wall    = "wall"
)

// DefaultSettings are five eager steps behind a first one.
func DefaultSettings() Settings { return Settings{Mode: measure.Eager.String(), Repeats: 5} }

// Validate reports every fault.
func (s Settings) Validate() error {
	var errs faults.List
	if _, err := s.mode(); err != nil {
		errs = append(errs, err)
	}
	errs.If(s.Repeats < 1 || s.Repeats > 1000, "%d steps to measure, want 1 to 1000", s.Repeats)
	switch {
	case s.Runtime == "" && (s.Clock != "" || s.Realtime):
		errs = append(errs, errors.New("clock and realtime of measuring go with runtime torch"))
	case s.Runtime == "":
	case s.Runtime != Torch:
		errs = append(errs, fmt.Errorf("runtime %q of measuring, want %s or nothing", s.Runtime, Torch))
	case s.Mode != measure.Eager.String() || s.Logical || s.Partition:
		errs = append(errs, errors.New("mode, logical and partition of measuring do not go with runtime torch"))
	case s.Clock != "" && s.Clock != Virtual && s.Clock != Wall:
		errs = append(errs, fmt.Errorf("clock %q of measuring, want %s or %s", s.Clock, Virtual, Wall))
	}
	return errors.Join(errs...)
}

func (s Settings) mode() (measure.Mode, error) {
	for _, m := range []measure.Mode{measure.Eager, measure.Captured} {
		if s.Mode == m.String() {
			return m, nil
		}
	}
	return 0, fmt.Errorf("mode %q of measuring, want %v or %v", s.Mode, measure.Eager, measure.Captured)
}

// String returns s as one line of JSON, which Parse reads.
func (s Settings) String() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // no field can fail
	}
	return string(text)
}

// Parse reads what String wrote.
func Parse(text string) (s Settings, err error) {
	if err := jsonx.Decode([]byte(text), &s); err != nil {
		return s, fmt.Errorf("settings of measuring: %w", err)
	}
	return s, s.Validate()
}

// Order identifies the op times of e on d devices. Two hosts that agree in it run
// the ops of a placement in the same order.
func Order(e plan.Evaluator, devices int) string {
	h := sha256.New()
	var word [8]byte
	for d := range devices {
		for _, s := range e.OpSeconds(d) {
			binary.LittleEndian.PutUint64(word[:], math.Float64bits(s))
			h.Write(word[:])
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Host identifies what measurements depend on beside the machine's description:
// driver, cuBLAS, and the GPUs' names, clocks, multiprocessors and memory. Hosts
// of the same GPUs and libraries have the same. version is the management
// library's name of the driver, or empty.
func Host(d gpu.Driver, b gpu.BLAS, gpus []int, version string) (string, error) {
	text := fmt.Sprintf("CUDA %d, cuBLAS %d", d.Version(), b.Version())
	if version != "" {
		text = "driver " + version + ", " + text
	}
	seen := map[int]bool{}
	for _, ordinal := range gpus {
		if ordinal == measure.Host || seen[ordinal] {
			continue
		}
		seen[ordinal] = true
		name, err := d.Name(ordinal)
		if err != nil {
			return "", err
		}
		memory, err := d.TotalMem(ordinal)
		if err != nil {
			return "", err
		}
		var figures [3]int
		for i, a := range []gpu.Attribute{gpu.SMCount, gpu.ClockKHz, gpu.MemoryClockKHz} {
			if figures[i], err = d.Attribute(ordinal, a); err != nil {
				return "", fmt.Errorf("GPU %d: attribute %d: %w", ordinal, a, err)
			}
		}
		text += fmt.Sprintf("; %s, %d SMs, %d and %d kHz, %d bytes", name, figures[0], figures[1], figures[2], memory)
	}
	return text, nil
}
