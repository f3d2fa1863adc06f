// Package pythontest owns a program that speaks the protocol of the measuring
// processes of Python without a framework, for tests: a step takes what its schedule predicts, times a
// factor.
package pythontest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"placer/measure/python"
)

// Behaviour is the environment variable that says how the stand-in behaves; a test
// program that finds it set calls Main in place of its tests.
const Behaviour = "PLACER_PYTHON_STAND_IN"

// Behaviours.
const (
	Serves   = "serves"
	NoTorch  = "no torch"
	Fails    = "fails"     // every request
	Dies     = "dies"      // at the first request
	NoAnswer = "no answer" // writes something else
	Slow     = "slow"      // each op that is not on the first device adds SlowFactor steps
	Unequal  = "unequal"   // results are not those of one device
	Hangs    = "hangs"     // at the first request
)

// Factor is measured over predicted, of steps and of ops.
const Factor = 1.25

// SlowFactor is what Slow adds to a step for each op, in steps.
const SlowFactor = 10

// Main behaves as behaviour says and returns an exit code.
func Main(behaviour string, in io.Reader, out, errors io.Writer) int {
	if behaviour == NoTorch {
		fmt.Fprintln(errors, "Traceback (most recent call last):\nModuleNotFoundError: No module named 'torch'")
		return 1
	}
	w := json.NewEncoder(out)
	_ = w.Encode(python.Ready{Format: "placer runtime ready 1", Ops: ops(os.Args), Devices: []string{"cpu:0", "cpu:1"}, Runtime: "torch", Version: "0.0-stand-in"})
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<30)
	for lines.Scan() {
		switch behaviour {
		case Dies:
			fmt.Fprintln(errors, "placer_torch: worker cpu:1: op mm: killed")
			return 1
		case Hangs:
			_, _ = io.Copy(io.Discard, in) // that is, until it is killed
		case NoAnswer:
			fmt.Fprintln(out, "a warning of a library")
			continue
		case Fails:
			_ = w.Encode(map[string]any{"id": nil, "error": "request: op mm is not in the step"})
			continue
		}
		a, err := answer(lines.Bytes())
		if err != nil {
			_ = w.Encode(map[string]any{"id": nil, "error": err.Error()})
			continue
		}
		for _, d := range a.Devices[1:] {
			if behaviour == Slow {
				a.Step += SlowFactor * float64(d.Ops) * a.Rounds[0]
			}
		}
		*a.Equal = behaviour != Unequal
		_ = w.Encode(a)
	}
	return 0
}

// ops counts the ops of the file behind --graph.
func ops(args []string) int {
	var g struct{ Ops []struct{} }
	if i := slices.Index(args, "--graph"); i >= 0 && i+1 < len(args) {
		if data, err := os.ReadFile(args[i+1]); err == nil {
			_ = json.Unmarshal(data, &g)
		}
	}
	return len(g.Ops)
}

func answer(line []byte) (*python.Answer, error) {
	var r struct {
		python.Request
		Schedule struct {
			Format  string
			Step    float64 `json:"step_time_s"`
			Devices []string
			Ops     []struct {
				Name, Device string
				Start        float64 `json:"start_s"`
				End          float64 `json:"end_s"`
			}
		}
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, err
	}
	s := &r.Schedule
	if s.Format != "placer schedule 1" {
		return nil, fmt.Errorf("request: format %q", s.Format)
	}
	step, equal, load := Factor*s.Step, true, 0.5
	a := &python.Answer{Format: python.Format, Step: step, Clock: r.Clock, Wall: []float64{2 * step}, Virtual: []float64{step}, Rounds: []float64{step}, Equal: &equal, Load: &load}
	at := map[string]int{}
	for i, d := range s.Devices {
		at[d] = i
		a.Devices = append(a.Devices, python.Device{Name: d})
	}
	for _, o := range s.Ops {
		d := &a.Devices[at[o.Device]]
		d.Ops++
		d.Busy += Factor * (o.End - o.Start)
		if r.Trace {
			a.Trace = append(a.Trace, python.Event{Op: o.Name, Device: o.Device, Start: Factor * o.Start, End: Factor * o.End})
		}
	}
	return a, nil
}
