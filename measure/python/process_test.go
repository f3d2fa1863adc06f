package python_test

import (
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"placer/graph"
	"placer/hw"
	"placer/measure/python"
	"placer/measure/python/pythontest"
	"placer/sim/schedule"
	"placer/units"
)

func TestMain(m *testing.M) {
	if b := os.Getenv(pythontest.Behaviour); b != "" {
		os.Exit(pythontest.Main(b, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

var halves = schedule.Schedule{GraphName: "g", GraphHash: "h", Method: "test", Step: 4e-3, Devices: []string{"cpu:0", "cpu:1"}, Ops: []schedule.Op{
	{Name: "x", Device: 0, Start: 0, End: 1e-3},
	{Name: "left", Device: 0, Start: 1e-3, End: 2e-3},
	{Name: "right", Device: 1, Start: 1e-3, End: 4e-3},
}}

// start starts the stand-in, which is this program.
func start(t *testing.T, behaviour string) (*python.Process, error) {
	t.Helper()
	return startWith(t, behaviour, 0)
}

// startWith starts it with a patience.
func startWith(t *testing.T, behaviour string, patience time.Duration) (*python.Process, error) {
	t.Helper()
	t.Setenv(pythontest.Behaviour, behaviour)
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := python.Start(context.Background(), python.Config{Runtime: python.Torch(), Python: me, Graph: "g.json", Patience: patience})
	if err == nil {
		t.Cleanup(func() { p.Close() })
	}
	return p, err
}

// One process measures many schedules.
func TestMeasure(t *testing.T) {
	p, err := start(t, pythontest.Serves)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Ready.Has(&halves); err != nil || p.Ready.Version == "" {
		t.Errorf("ready %+v: %v", p.Ready, err)
	}
	for _, scale := range []units.Seconds{1, 3} {
		s := halves
		s.Step *= scale
		a, err := p.Measure(&s, python.Request{Clock: "virtual", Trace: true})
		if err != nil {
			t.Fatal(err)
		}
		if want := pythontest.Factor * float64(s.Step); math.Abs(a.Step-want) > 1e-12 || a.Clock != "virtual" || a.Equal == nil || !*a.Equal || len(a.Trace) != 3 {
			t.Errorf("answer %+v, want a step of %v and 3 ops", a, want)
		}
		if d := a.Devices[1]; d.Name != "cpu:1" || d.Ops != 1 || math.Abs(d.Busy-pythontest.Factor*3e-3) > 1e-12 {
			t.Errorf("device %+v", d)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestErrors(t *testing.T) {
	for behaviour, want := range map[string]string{
		pythontest.Fails:    "request: op mm is not in the step",
		pythontest.Dies:     "placer_torch: worker cpu:1: op mm: killed (exit status 1)",
		pythontest.NoAnswer: `placer_torch: "a warning of a library\n" is no answer`,
	} {
		t.Run(behaviour, func(t *testing.T) {
			p, err := start(t, behaviour)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = p.Measure(&halves, python.Request{}); err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, python.ErrNone) {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
}

// A process that hangs is ended, and says so as often as it is asked.
func TestHangs(t *testing.T) {
	p, err := startWith(t, pythontest.Hangs, 3*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := p.Measure(&halves, python.Request{}); err == nil || !strings.Contains(err.Error(), "placer_torch: no answer in 3.8s: its process hangs") {
			t.Errorf("error %v, want one that says it hangs", err)
		}
	}
}

func TestNone(t *testing.T) {
	if _, err := start(t, pythontest.NoTorch); !errors.Is(err, python.ErrNone) || !strings.Contains(err.Error(), "No module named 'torch'") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want ErrNone on one line", err)
	}
	if _, err := python.Start(context.Background(), python.Config{Runtime: python.TensorFlow(), Python: "no-such-python"}); !errors.Is(err, python.ErrNone) {
		t.Errorf("error %v, want ErrNone", err)
	}
	s := halves
	s.Devices = []string{"cpu:0", "gpu:0"}
	r := python.Ready{Devices: []string{"cpu:0", "cpu:1"}}
	if err := r.Has(&s); !errors.Is(err, python.ErrNone) || !strings.Contains(err.Error(), "gpu:0: op right") {
		t.Errorf("error %v, want ErrNone, which names gpu:0", err)
	}
}

// With a GPU the wall clock decides, and measurements are of these GPUs.
func TestGPUs(t *testing.T) {
	cores := &hw.Machine{Devices: []hw.Device{{Name: "cpu:0", Kind: hw.CPU}, {Name: "cpu:1", Kind: hw.CPU}}}
	gpus := &hw.Machine{Devices: []hw.Device{{Name: "gpu:0", Kind: hw.GPU}, {Name: "cpu:0", Kind: hw.CPU}}}
	if a, b, c := python.Torch().Clock(cores), python.Torch().Clock(gpus), python.TensorFlow().Clock(cores); a != "virtual" || b != "wall" || c != "wall" {
		t.Errorf("clocks %s, %s and %s", a, b, c)
	}
	r := python.Ready{Devices: []string{"cpu:0", "cpu:1"}, Runtime: "torch", Version: "1", Host: "H"}
	if got := r.Identity(); got != "torch 1, H, 2 cores" {
		t.Errorf("%q", got)
	}
	r.Devices, r.GPUs = append(r.Devices, "gpu:0"), []string{"H200"}
	if got := r.Identity(); got != "torch 1, H, 2 cores, H200" {
		t.Errorf("%q", got)
	}
}

// A send becomes a transfer to each reader's device; what is not of the graph is left
// out.
func TestSimTrace(t *testing.T) {
	b := graph.NewBuilder("g")
	x := b.Op(graph.Op{Name: "x", Kind: "Split", Forward: graph.None}, nil, graph.Tensor{Bytes: 8}, graph.Tensor{Bytes: 16})
	b.Op(graph.Op{Name: "y", Kind: "Relu", Forward: graph.None}, []graph.TensorID{b.Output(x, 1)})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m := &hw.Machine{Devices: []hw.Device{{Name: "cpu:0"}, {Name: "cpu:1"}, {Name: "cpu:2"}}}
	a := python.Answer{Trace: []python.Event{
		{Op: "x", Device: "cpu:0", Start: 1, End: 2},
		{Op: "x", Device: "cpu:0", Start: 2, End: 3, Send: true, Output: 1, To: []string{"cpu:1", "cpu:2"}, Bytes: 16},
		{Op: "x", Device: "cpu:0", Send: true, Output: 2, To: []string{"cpu:1"}},
		{Op: "z", Device: "cpu:0"}, {Op: "y", Device: "cpu:7"},
		{Op: "y", Device: "cpu:1", Start: 3, End: 4},
	}}
	tr := a.SimTrace(g, m)
	if len(tr.Ops) != 2 || tr.Ops[1].Op != 1 || tr.Ops[1].Device != 1 || tr.Ops[1].Start != 3 {
		t.Errorf("ops %+v", tr.Ops)
	}
	if len(tr.Transfers) != 2 || tr.Transfers[1].To != 2 || tr.Transfers[1].Tensor != 1 || tr.Transfers[1].Bytes != 16 {
		t.Errorf("transfers %+v", tr.Transfers)
	}
}
