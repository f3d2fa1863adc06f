package search

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"placer/plan"
	"placer/units"
)

// runState is the state of a run as a whole.
type runState struct {
	Format        string  `json:"format"`
	Seconds       float64 `json:"seconds"`
	FirstFeasible float64 `json:"first_feasible_s"`
}

// methodState is what is known of one method.
type methodState struct {
	Format      string      `json:"format"`
	Method      string      `json:"method"`
	Kind        plan.Kind   `json:"kind"`
	Ended       bool        `json:"ended"`
	Reason      string      `json:"reason,omitempty"` // of a method that was skipped
	Evaluations int         `json:"evaluations"`
	CPUSeconds  float64     `json:"cpu_seconds"`
	StepTime    float64     `json:"step_time_s"`
	Overflow    units.Bytes `json:"overflow"`
	Device      []byte      `json:"device"` // base64, a byte per op; null without a placement
	Priority    []int32     `json:"priority,omitempty"`
	Fusion      []byte      `json:"fusion,omitempty"` // base64, a byte per op
	Notes       []string    `json:"notes,omitempty"`
}

func (s *methodState) remembered(checkpoint string) Remembered {
	r := Remembered{Reason: s.Reason, CPUSeconds: s.CPUSeconds, Checkpoint: checkpoint}
	if s.Device != nil {
		r.Outcome = &plan.Outcome{Decision: plan.Decision{Device: s.Device, Priority: s.Priority, Fusion: s.Fusion}, Score: plan.Score{Value: s.StepTime, Overflow: s.Overflow}, Evaluations: s.Evaluations, Notes: s.Notes}
	}
	return r
}

// memory reads what the run remembers.
func (r *Run) memory() (*Memory, error) {
	m := &Memory{Ended: map[string]Remembered{}, Running: map[string]Remembered{}, FirstFeasible: -1}
	var s runState
	switch err := r.Read(stateFile, &s); {
	case errors.Is(err, fs.ErrNotExist): // killed before the first write
	case err != nil:
		return nil, err
	case s.Format != stateFormat || s.Seconds < 0:
		return nil, fmt.Errorf("%s: format %q and %g seconds, want %q and none below 0", r.Path(stateFile), s.Format, s.Seconds, stateFormat)
	default:
		m.Seconds, m.FirstFeasible = s.Seconds, s.FirstFeasible
	}
	entries, err := os.ReadDir(r.Path(stateFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if err := r.recollect(m, filepath.Join(stateFolder, e.Name())); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// recollect reads the state of one method, the file name, into m.
func (r *Run) recollect(m *Memory, name string) error {
	var s methodState
	if err := r.Read(name, &s); err != nil {
		return err
	}
	if s.Format != stateFormat || s.Evaluations < 0 || s.CPUSeconds < 0 {
		return fmt.Errorf("%s: format %q, %d evaluations and %g CPU seconds, want %q and none below 0", r.Path(name), s.Format, s.Evaluations, s.CPUSeconds, stateFormat)
	}
	if s.Ended {
		m.Ended[s.Method] = s.remembered("")
		return nil
	}
	checkpoint := r.Path(PolicyFile)
	if _, err := os.Stat(checkpoint); err != nil || s.Kind != plan.Policy {
		checkpoint = ""
	}
	m.Running[s.Method] = s.remembered(checkpoint)
	return nil
}
