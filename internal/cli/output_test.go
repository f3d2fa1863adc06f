package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"placer/hw/gpu"
	"placer/hw/gpu/fake"
	"placer/hw/nvml"
)

const smallGraph = "rnnlm:layers=1,unroll=2"

// A file that cannot be written is told before the work whose result it is for.
func TestOutputIsAskedForFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	nowhere := filepath.Join("none", "out.json")
	for _, args := range [][]string{
		{"search", "--workload", smallGraph, "--gpus", "2", "--budget", "1h", "--out", "run", "-o", nowhere},
		{"place", "--workload", smallGraph, "--gpus", "2", "-o", nowhere},
		{"finetune", "--workload", smallGraph, "--gpus", "2", "-o", nowhere},
		{"import", "--workload", smallGraph, "-o", nowhere},
		{"pipeline", "--graph", "none.txt", "--profile", nowhere},
		{"bench", "hw", "-o", nowhere},
		{"bench", "hw", "--machine-file", nowhere},
		{"bench", "hw", "--html", nowhere},
		{"bench", "steps", "--gpu", "h200", "-o", nowhere},
		{"bench", "policy", "-o", nowhere},
		{"bench", "regal", "--csv", nowhere},
	} {
		got := command(t, args)
		if !strings.HasPrefix(got, "! placer: "+nowhere+" cannot be written: ") || !strings.HasSuffix(got, "exit 1\n") {
			t.Errorf("%v: %s", args, got)
		}
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// place and finetune print the plan for -o -, as search does.
func TestPlanOnStdout(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"place"}, {"finetune", "-q", "--steps", "1", "--samples", "4"}} {
		got := command(t, append(args, "--workload", smallGraph, "--gpus", "2", "-o", "-"))
		if !strings.HasPrefix(got, `{"format": "placer plan 1",`) || strings.Contains(got, "reduction") || strings.Contains(got, "exit") {
			t.Errorf("%v: %.200s", args, got)
		}
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// A graph that no device has room for ends place with a line that says so.
func TestPlaceThatDoesNotFit(t *testing.T) {
	t.Chdir(t.TempDir())
	got := command(t, []string{"place", "--workload", "rnnlm8", "--gpus", "1", "--samples", "1"})
	if !strings.Contains(got, "greedy  does not fit          -") || !strings.Contains(got, "! placer: infeasible: the best plan found takes 25.92 GB more memory than the devices have\nexit 3\n") {
		t.Error(got)
	}
}

// The largest peak of a graph without tensors is 0, and so is its bound: there is no
// share to tell.
func TestNothingInMemory(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("g.json", []byte(`{"format": "placer graph 1", "name": "g", "ops": [{"name": "a", "kind": "NoOp"}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	got := command(t, []string{"search", "--graph", "g.json", "--gpus", "2", "--objective", "memory", "--methods", "human,random-best", "--evaluations", "3", "--out", "run", "-q"})
	if strings.Contains(got, "exit") || !strings.Contains(got, "max peak 0 B; proven lower bound 0 B") {
		t.Error(got)
	}
}

// A budget that loading uses up still gives the plan of the first rule that fits.
func TestNoTimeStillGivesAPlan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, stdout, stderr := process(t, dir, "search", "--workload", smallGraph, "--gpus", "2", "--budget", "1ns", "--out", "run", "-q")
	if code := exitOf(cmd.Wait()); code != 0 || !strings.Contains(stdout.String(), "* best: ") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "run", "plan.json")); err != nil {
		t.Error(err)
	}
}

// What a bench has measured goes to stdout for -o -, in place of the text, and to no file.
func TestBenchOnStdout(t *testing.T) {
	t.Chdir(t.TempDir())
	one := fake.Default()
	one.Devices, one.Memory = 1, 60<<30
	for _, args := range [][]string{
		{"hw", "--quick", "--cpu=false"},
		{"policy", "--nodes", "50", "--repeats", "1"},
		{"steps", "--gpu", "a100", "--workloads", smallGraph, "--rank", smallGraph, "--plans", "1", "--devices", "2", "--repeats", "1"},
	} {
		code, stdout, stderr := onFake(t, one, append(append([]string{"bench"}, args...), "-o", "-")...)
		if code != 0 || !json.Valid([]byte(stdout)) {
			t.Errorf("%v: exit %d: %s\n%.300s", args, code, stderr, stdout)
		}
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// The file that a command makes is --output everywhere; --out, which is a folder elsewhere,
// stays another name of it where it was its name.
func TestOutputHasOneName(t *testing.T) {
	for _, line := range []string{"machines detect", "machines split", "bench hw", "bench steps", "bench policy"} {
		cmd, _, err := (&console{}).root().Find(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		f := cmd.Flags().ShorthandLookup("o")
		if f == nil || f.Name != "output" || cmd.Flags().Lookup("out") != f {
			t.Errorf("%s: -o is %+v", line, f)
		}
	}
}

// oneFails has a second GPU that cannot be used.
type oneFails struct{ gpu.Driver }

func (d oneFails) Retain(dev int) (gpu.Context, error) {
	if dev == 1 {
		return 0, errors.New("the second GPU fails")
	}
	return d.Driver.Retain(dev)
}

// TestBenchHardwareSaysAll: the tables come though a file cannot be written, what could not
// be measured and what could not be written are both told, and clocks that nobody watched
// have the watcher's reason.
func TestBenchHardwareSaysAll(t *testing.T) {
	t.Parallel()
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(gone, 0o755); err != nil {
		t.Fatal(err)
	}
	g := fake.New(fake.Default())
	h := noHardware()
	h.open = func(string, string) (gpu.Driver, gpu.BLAS, error) { return oneFails{g}, g.BLAS(), nil }
	h.watch = func() (monitor, error) { return nil, errors.New("nobody watches") }
	h.detect = func() (*nvml.Inventory, error) { return nil, errors.New("nothing is detected") }
	var out, err bytes.Buffer
	c := &console{in: strings.NewReader(""), out: &out, err: &err, clock: g.Clock, cpu: g.Clock, hardware: h, now: func() time.Time {
		if err := os.RemoveAll(gone); err != nil { // behind the measuring
			t.Error(err)
		}
		return time.Unix(0, 0)
	}}
	code := c.run(context.Background(), []string{"bench", "hw", "--quick", "--cpu=false", "-o", filepath.Join(gone, "hardware.json"), "--machine-file", filepath.Join(gone, "machine.json")})
	if code != exitFailed {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{"the second GPU fails", "hardware.json cannot be written", "machine.json cannot be written"} {
		if !strings.Contains(err.String(), want) {
			t.Errorf("no %q in %s", want, err.String())
		}
	}
	if text := out.String(); !strings.Contains(text, "Fake GPU") || !strings.Contains(text, "clocks were not watched: nobody watches") || strings.Contains(text, "nothing is detected") {
		t.Error(text)
	}
}

// TestOneIsSingular: no transcript says "1 evaluations".
func TestOneIsSingular(t *testing.T) {
	paths, err := filepath.Glob("testdata/transcripts/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	wrong := regexp.MustCompile(`(?:^|[ (])1 [a-z][a-z-]*[a-rt-z]s\b`)
	for _, path := range paths {
		for k, line := range strings.Split(string(read(t, ".", path)), "\n") {
			// Units of time, and a range's end ("-1 to 1 is").
			if found := wrong.FindString(line); found != "" && !slices.Contains([]string{"1 ms", "1 us", "1 ns", "1 is", "1 has"}, strings.Trim(found, " (")) {
				t.Errorf("%s:%d: %q in %s", filepath.Base(path), k+1, found, line)
			}
		}
	}
}
