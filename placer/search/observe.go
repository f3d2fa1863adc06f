package search

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"placer/plan"
)

// line is one line of the progress file.
type line struct {
	Seconds     float64  `json:"seconds"`
	Method      string   `json:"method"`
	What        What     `json:"what"`
	Evaluations int      `json:"evaluations"`
	StepTime    *float64 `json:"step_time_s"` // null before the first placement
	Feasible    bool     `json:"feasible"`
	Reason      string   `json:"reason,omitempty"`
}

// Observe is the Observer of a search. It writes progress lines, states and a
// learner's checkpoints but for the last (SaveLearner).
func (r *Run) Observe(e Event) error {
	if e.Device != nil && e.Score.Feasible() && r.feasible < 0 {
		r.feasible = e.Seconds
	}
	if err := r.tell(e); err != nil {
		return err
	}
	switch e.What {
	case Progress:
		return r.progressed(e)
	case Ended:
		if s, ok := learnerOf(e); ok {
			r.learner = s
		}
		return r.remember(&methodState{Method: e.Method, Kind: e.Kind, Ended: !e.Cut, Evaluations: e.Evaluations, CPUSeconds: e.CPUSeconds,
			StepTime: e.Score.Value, Overflow: e.Score.Overflow, Device: e.Device, Priority: e.Outcome.Priority, Fusion: e.Outcome.Fusion, Notes: e.Outcome.Notes}, e.Seconds)
	case Skipped:
		if e.Cut {
			return nil
		}
		return r.remember(&methodState{Method: e.Method, Kind: e.Kind, Ended: true, Reason: e.Reason, CPUSeconds: e.CPUSeconds}, e.Seconds)
	}
	r.written[e.Method], r.saved[e.Method] = e.Seconds, e.Seconds
	return nil
}

// progressed writes the state of a method that goes on, and the checkpoint of a learner,
// when they are due.
func (r *Run) progressed(e Event) error {
	if e.Device != nil {
		r.pending[e.Method] = &methodState{Method: e.Method, Kind: e.Kind, StepTime: e.Score.Value, Overflow: e.Score.Overflow, Device: slices.Clone(e.Device),
			Priority: slices.Clone(e.Priority), Fusion: slices.Clone(e.Fusion)}
	}
	if s := r.pending[e.Method]; s != nil && e.Seconds-r.written[e.Method] >= statePeriod {
		s.Evaluations, s.CPUSeconds = e.Evaluations, e.CPUSeconds
		if err := r.remember(s, e.Seconds); err != nil {
			return err
		}
	}
	if s, ok := learnerOf(e); ok && e.Seconds-r.saved[e.Method] >= savePeriod {
		r.saved[e.Method] = e.Seconds
		r.save(s)
	}
	return nil
}

// learnerOf returns the policy of an event that can save what it has learned.
func learnerOf(e Event) (Saver, bool) {
	s, ok := e.Placer.(Saver)
	return s, ok && e.Kind == plan.Policy
}

// SaveLearner writes the last checkpoint of the learner that has ended, if there is
// one. It comes behind the results, which it must leave their room on the disk.
func (r *Run) SaveLearner() {
	if r.learner != nil {
		r.save(r.learner)
		r.learner = nil
	}
}

func (r *Run) save(s Saver) {
	if err := s.Save(r.Path(PolicyFile)); err != nil && r.Warn != nil {
		r.Warn(fmt.Errorf("no checkpoint of the policy: %w", err))
	}
}

func (r *Run) remember(s *methodState, now float64) error {
	s.Format = stateFormat
	r.written[s.Method] = now
	if err := r.WriteJSON(filepath.Join(stateFolder, s.Method+".json"), s); err != nil {
		return err
	}
	return r.WriteJSON(stateFile, runState{stateFormat, now, r.feasible})
}

func (r *Run) tell(e Event) error {
	if e.What == Progress && e.Seconds-r.told[e.Method] < progressPeriod {
		return nil
	}
	r.told[e.Method] = e.Seconds
	l := line{Seconds: e.Seconds, Method: e.Method, What: e.What, Evaluations: e.Evaluations, Reason: e.Reason}
	if e.Score.Value > 0 {
		l.StepTime, l.Feasible = &e.Score.Value, e.Score.Feasible()
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = r.progress.Write(append(text, '\n'))
	return err
}
