package transfer

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"

	"placer/plan"
	"placer/units"
)

// TuneStateFormat is the value of "format" in the file of a TuneState.
const TuneStateFormat = "placer finetune 3"

// TuneState is a fine-tuning between two steps. A run that goes on from it ends
// as if it had not been stopped.
type TuneState struct {
	Format      string  `json:"format"`
	Key         string  `json:"key"` // what the run depends on
	Step        int     `json:"step"`
	Start       int     `json:"start"` // level that the run began with
	Evaluations int     `json:"evaluations"`
	Seconds     float64 `json:"seconds"` // that the steps took, on the problem's clock
	Best        Placed  `json:"best"`
	// Of the level of the last step; empty before the first one.
	Elite []Kept    `json:"elite,omitempty"`
	Free  []float32 `json:"free,omitempty"`
	Link  []float32 `json:"link,omitempty"`
}

// Placed is a placement with its score.
type Placed struct {
	Cells    []byte      `json:"cells"` // [cells] device of each
	Seconds  float64     `json:"seconds"`
	Overflow units.Bytes `json:"overflow,omitempty"`
}

// Kept is a placement that is learned from.
type Kept struct {
	Placed
	Born int `json:"born"` // step
}

func (x Placed) score() plan.Score { return plan.Score{Seconds: x.Seconds, Overflow: x.Overflow} }

func (s *TuneState) score() plan.Score { return s.Best.score() }

// key names what a run depends on.
func (t Tuner) key(p *plan.Problem) (string, error) {
	h := sha256.New()
	if err := t.Policy.Write(h); err != nil {
		return "", err
	}
	if err := json.NewEncoder(h).Encode([]any{t.Config, p.Graph.Hash(), p.Machine, p.Seed, p.Priority, p.Fusion}); err != nil {
		return "", fmt.Errorf("finetune: %w", err)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16]), nil
}

// snapshot returns the state after a step.
func (r *tuning) snapshot() *TuneState {
	s := r.state
	s.Format = TuneStateFormat
	if r.pace.clock != nil {
		s.Seconds = r.pace.spent + r.pace.clock() - r.pace.begin
	}
	s.Elite = s.Elite[:0]
	for _, x := range r.elite {
		s.Elite = append(s.Elite, Kept{x.Placed, x.born})
	}
	s.Free, s.Link = r.level.free, r.level.link
	return s
}

// restore puts r where From was.
func (r *tuning) restore(key string) error {
	from := *r.From
	if from.Key != key {
		return fmt.Errorf("finetune: the state is that of another graph, machine, policy, seed or configuration")
	}
	check := func(x Placed) error {
		if len(x.Cells) != r.cells.NumUnits() {
			return fmt.Errorf("finetune: the state places %d cells, the graph has %d", len(x.Cells), r.cells.NumUnits())
		}
		for _, d := range x.Cells {
			if int(d) >= r.view.problem.Machine.NumDevices() {
				return fmt.Errorf("finetune: the state names device %d, the machine has %d", d, r.view.problem.Machine.NumDevices())
			}
		}
		return nil
	}
	if err := check(from.Best); err != nil {
		return err
	}
	r.state = &from
	if from.Step < 1 || from.Step > r.Config.Steps {
		return fmt.Errorf("finetune: the state is that of step %d of %d", from.Step, r.Config.Steps)
	}
	if from.Start < 0 || from.Start >= len(r.view.scenes) {
		return fmt.Errorf("finetune: the state began with level %d of %d", from.Start, len(r.view.scenes))
	}
	li := r.Config.level(from.Step-1, from.Start)
	l := newTuneLevel(r.view.scenes[li], li, r.cells)
	if len(from.Free) != len(l.free) || len(from.Link) != len(l.link) {
		return fmt.Errorf("finetune: the state has %d and %d logits, want %d and %d", len(from.Free), len(from.Link), len(l.free), len(l.link))
	}
	copy(l.free, from.Free)
	copy(l.link, from.Link)
	for _, w := range r.workers {
		w.enter(r.Policy.net, l)
	}
	for _, x := range from.Elite {
		if err := check(x.Placed); err != nil {
			return err
		}
		r.elite = append(r.elite, &elite{x.Placed, x.Born, l.replay(r.workers[0], x.Cells)})
	}
	r.level = l
	return nil
}

// Write writes s.
func (s *TuneState) Write(w io.Writer) error { return json.NewEncoder(w).Encode(s) }

// ReadTuneState reads what TuneState.Write wrote; name is the file's for errors.
func ReadTuneState(data []byte, name string) (*TuneState, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	s := &TuneState{}
	switch err := d.Decode(s); {
	case err == io.EOF, err == io.ErrUnexpectedEOF:
		return nil, fmt.Errorf("%s: the document ends early", name)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if s.Format != TuneStateFormat {
		return nil, fmt.Errorf("%s: format is %q, want %q", name, s.Format, TuneStateFormat)
	}
	return s, nil
}
