package sequential

import (
	"bytes"
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"

	"placer/plan"
	"placer/sim"
)

// TestResumedTuningEndsTheSame: a run taken up from the file of any step ends with
// the state, byte for byte, of the run that nobody disturbed.
func TestResumedTuningEndsTheSame(t *testing.T) {
	p, err := small.Problem()
	if err != nil {
		t.Fatal(err)
	}
	pol := policy(t, 16)
	var files [][]byte
	save := func(s *TuneState) error {
		var b bytes.Buffer
		err := s.Write(&b)
		files = append(files, b.Bytes())
		return err
	}
	whole, err := Tuner{Policy: pol, Config: quickTune(), Save: save}.Place(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	all := files
	for _, at := range []int{0, 2, 3, 11} {
		s, err := ReadTuneState(all[at], "s")
		if err != nil {
			t.Fatal(err)
		}
		files = nil
		o, err := Tuner{Policy: pol, Config: quickTune(), From: s, Save: save}.Place(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		if read, err := ReadTuneState(all[at], "s"); err != nil || !reflect.DeepEqual(s, read) {
			t.Errorf("resumed behind step %d, the state that it began with has changed", at)
		}
		if !slices.Equal(o.Device, whole.Device) || o.Evaluations != whole.Evaluations {
			t.Errorf("resumed behind step %d, the plan differs", at)
		}
		if len(files) > 0 && !bytes.Equal(files[len(files)-1], all[11]) {
			t.Errorf("resumed behind step %d, the last state differs", at)
		}
	}
	other := *p
	other.Seed++
	s, err := ReadTuneState(all[4], "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (Tuner{Policy: pol, Config: quickTune(), From: s}).Place(context.Background(), &other); err == nil {
		t.Error("a state of another seed was taken up")
	}
	slower := *p
	slower.Evaluator = otherTimes{p.Evaluator}
	if _, err := (Tuner{Policy: pol, Config: quickTune(), From: s}).Place(context.Background(), &slower); err == nil || !strings.Contains(err.Error(), "op times") {
		t.Errorf("a state of other op times: %v", err)
	}
	apart := *p
	apart.Evaluator = otherLinks{p.Evaluator}
	if _, err := (Tuner{Policy: pol, Config: quickTune(), From: s}).Place(context.Background(), &apart); err == nil || !strings.Contains(err.Error(), "another contention") {
		t.Errorf("a state of another contention: %v", err)
	}
	for name, change := range map[string]func(s *TuneState){
		"a best":  func(s *TuneState) { s.Best.Seconds /= 1000 },
		"a kept":  func(s *TuneState) { s.Elite[1].Seconds /= 2 },
		"another": func(s *TuneState) { s.Best.Cells[0] ^= 1 },
	} {
		x, err := ReadTuneState(all[4], "s")
		if err != nil {
			t.Fatal(err)
		}
		change(x)
		if _, err := (Tuner{Policy: pol, Config: quickTune(), From: x}).Place(context.Background(), p); err == nil || !strings.Contains(err.Error(), "it was damaged") {
			t.Errorf("%s placement with another score: %v", name, err)
		}
	}
	s.Tied = s.Tied[1:]
	if _, err := (Tuner{Policy: pol, Config: quickTune(), From: s}).Place(context.Background(), p); err == nil {
		t.Error("a state with a logit missing was taken up")
	}
	if _, err := ReadTuneState([]byte(`{"format":"x"}`), "s"); err == nil {
		t.Error("a state of another format was read")
	}
}

// otherLinks says that transfers never wait.
type otherLinks struct{ plan.Evaluator }

func (otherLinks) Contention() sim.Contention { return sim.Uncontended }

// otherTimes takes twice as long for the last op.
type otherTimes struct{ plan.Evaluator }

func (e otherTimes) OpSeconds(d int) []float64 {
	x := slices.Clone(e.Evaluator.OpSeconds(d))
	x[len(x)-1] *= 2
	return x
}
