package sequential

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"placer/internal/jsonx"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// tuneStateFormat is the value of "format" in the file of a TuneState.
const tuneStateFormat = "placer finetune 3"

// TuneState is a fine-tuning between two steps. A run that goes on from it ends
// as if it had not been stopped. Its fields, Step among them, are those of its file.
type TuneState struct{ tuneState }

// tuneState is the file of a TuneState.
type tuneState struct {
	Format      string    `json:"format"`
	Key         string    `json:"key"` // what the run depends on
	Step        int       `json:"step"`
	Start       level     `json:"start"` // that the run began with
	Evaluations int       `json:"evaluations"`
	Seconds     float64   `json:"seconds"` // that the steps took, on the problem's clock
	Best        placement `json:"best"`
	Looked      int       `json:"looked,omitempty"` // moves seen on the coarsened graph
	// Of the level of the last step; empty before the first one.
	Elite []kept    `json:"elite,omitempty"`
	Free  []float32 `json:"free,omitempty"`
	Tied  []float32 `json:"link,omitempty"`
}

// placement is one with its score.
type placement struct {
	Cells    []byte      `json:"cells"` // [cells] device of each
	Seconds  float64     `json:"seconds"`
	Overflow units.Bytes `json:"overflow,omitempty"`
}

// kept is a placement that is learned from.
type kept struct {
	placement
	Born int `json:"born"` // step
}

func (x placement) score() plan.Score { return plan.Score{Value: x.Seconds, Overflow: x.Overflow} }

func (s *tuneState) score() plan.Score { return s.Best.score() }

// key names what a run depends on. The evaluator is there by its op times and, where it is
// not the simulator's default, by how transfers share links.
func (t Tuner) key(p *plan.Problem) (string, error) {
	h := sha256.New()
	if err := t.Policy.Write(h); err != nil {
		return "", err
	}
	parts := []any{t.Config.settings(), p.Graph.Hash(), p.Machine, p.Seed, p.Priority, p.Fusion, p.Objective.Normal()}
	if p.Decides(plan.Schedule) || p.Decides(plan.Fuse) {
		parts = append(parts, p.Tasks)
	}
	if s, ok := p.Evaluator.(interface{ Contention() sim.Contention }); ok && s.Contention() != sim.Default().Contention {
		parts = append(parts, s.Contention().String())
	}
	if err := json.NewEncoder(h).Encode(parts); err != nil {
		return "", fmt.Errorf("finetune: %w", err)
	}
	for d := range p.Machine.NumDevices() {
		if err := binary.Write(h, binary.LittleEndian, p.Evaluator.OpSeconds(d)); err != nil {
			return "", fmt.Errorf("finetune: %w", err)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16]), nil
}

// snapshot returns the state after a step.
func (r *tuning) snapshot() *TuneState {
	s := r.state
	s.Format, s.Seconds = tuneStateFormat, r.pace.seconds()
	s.Elite = s.Elite[:0]
	for _, x := range r.elite {
		s.Elite = append(s.Elite, x.kept)
	}
	s.Free, s.Tied = r.logits.free, r.logits.tied
	return s
}

// ErrState is in every error that says why a TuneState is not gone on from.
var ErrState = errors.New("finetune: the state")

// restore puts r where From was.
func (r *tuning) restore(ctx context.Context, key string) error {
	from := *r.From
	from.Elite = slices.Clone(from.Elite) // the caller's stays
	if from.Key != key {
		return fmt.Errorf("%w is that of another graph, machine, policy, seed or configuration, or of other tasks, op times or another contention, or an earlier version of this program wrote it: begin anew", ErrState)
	}
	if from.Step < 1 || from.Step > r.Config.Steps {
		return fmt.Errorf("%w is that of step %d of %d", ErrState, from.Step, r.Config.Steps)
	}
	if from.Start < 0 || int(from.Start) >= len(r.features.at) {
		return fmt.Errorf("%w began with level %d of %d", ErrState, from.Start, len(r.features.at))
	}
	if err := r.check(from.Best); err != nil {
		return err
	}
	at := r.pace.level(from.Step-1, from.Start)
	l := newLogits(r.features.instance(at), at, r.cells)
	if len(from.Free) != len(l.free) || len(from.Tied) != len(l.tied) {
		return fmt.Errorf("%w has %d and %d logits, want %d and %d", ErrState, len(from.Free), len(from.Tied), len(l.free), len(l.tied))
	}
	copy(l.free, from.Free)
	copy(l.tied, from.Tied)
	r.use(ctx, l)
	for _, x := range from.Elite {
		if err := r.check(x.placement); err != nil {
			return err
		}
		r.elite = append(r.elite, &elite{kept: x})
	}
	r.state = &from
	return nil
}

// check reports whether x is no placement of the problem, or has another score than it says:
// what a state claims is not taken for what was found.
func (r *tuning) check(x placement) error {
	if len(x.Cells) != r.cells.NumUnits() {
		return fmt.Errorf("%w places %d cells, the graph has %d", ErrState, len(x.Cells), r.cells.NumUnits())
	}
	for _, d := range x.Cells {
		if devices := r.problem.Machine.NumDevices(); int(d) >= devices {
			return fmt.Errorf("%w names device %d, the machine has %d", ErrState, d, devices)
		}
	}
	w := r.workers[0]
	r.expand(x.Cells, w.device)
	if got := w.evaluator.Evaluate(r.problem.Complete(plan.Decision{Device: w.device})); got != x.score() {
		return fmt.Errorf("%w scores a placement %.9g s and %d B too much, which takes %.9g s and %d B: it was damaged, or another version of this program wrote it; begin anew", ErrState, x.Seconds, x.Overflow, got.Value, got.Overflow)
	}
	return nil
}

// Write writes s.
func (s *TuneState) Write(w io.Writer) error { return json.NewEncoder(w).Encode(s) }

// ReadTuneState reads what TuneState.Write wrote; name is the file's for errors.
func ReadTuneState(data []byte, name string) (*TuneState, error) {
	s := &TuneState{}
	if err := jsonx.Decode(data, s); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if s.Format != tuneStateFormat {
		return nil, fmt.Errorf("%s: format is %q, want %q", name, s.Format, tuneStateFormat)
	}
	return s, nil
}
