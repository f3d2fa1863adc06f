package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"placer/hw/gpu"
	"placer/hw/nvml"
	"placer/placer/problem"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestTranscripts runs the command lines of testdata/transcripts and compares
// exit code, stdout and stderr. A transcript starts with the text files that its
// folder holds ("-- name --" and the text), then has command lines, each a line
// "$ placer ..." with the output below it; "< name" at its end feeds the file to
// stdin. The clock stands still, so nothing in the output depends on the machine
// that runs the test.
func TestTranscripts(t *testing.T) {
	testdata := map[string][]byte{}
	for _, path := range []string{"testdata/mymodel.json", "../../placer/strategies/torch/testdata/joined.json"} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		testdata[filepath.Base(path)] = data
	}
	paths, err := filepath.Glob("testdata/transcripts/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			path, err := filepath.Abs(path)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(t.TempDir())
			got := replay(t, string(want), testdata)
			if got == string(want) {
				return
			}
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s differs; got\n%s", filepath.Base(path), firstDifference(got, string(want)))
		})
	}
}

// replay runs the commands of a transcript and returns it with their real output. testdata are
// the files that it may copy, by name.
func replay(t *testing.T, script string, testdata map[string][]byte) string {
	t.Helper()
	var out strings.Builder
	var file *os.File
	running := false
	for line := range strings.Lines(script) {
		text := strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(text, "$ placer"):
			if file != nil {
				file.Close()
				file = nil
			}
			running = true
			out.WriteString(line + command(t, strings.Fields(text)[2:]) + "\n")
		case strings.HasPrefix(text, "#"):
			if file != nil {
				file.Close()
				file = nil
			}
			out.WriteString(line)
		case running: // old output
		case strings.HasPrefix(text, "-- ") && strings.HasSuffix(text, " --"):
			if file != nil {
				file.Close()
			}
			name := strings.TrimSuffix(strings.TrimPrefix(text, "-- "), " --")
			name, from, copied := strings.Cut(name, " from ")
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			var err error
			if file, err = os.Create(name); err != nil {
				t.Fatal(err)
			}
			out.WriteString(line)
			if copied { // a file of testdata
				if _, err := file.Write(testdata[from]); err != nil || testdata[from] == nil {
					t.Fatalf("%s: %v", from, err)
				}
			}
		default:
			if file != nil {
				if _, err := file.WriteString(line); err != nil {
					t.Fatal(err)
				}
			}
			out.WriteString(line)
		}
	}
	return out.String()
}

// command runs one command line in process and returns what it wrote.
func command(t *testing.T, args []string) string {
	t.Helper()
	stdin := []byte{}
	if n := len(args); n > 1 && args[n-2] == "<" {
		var err error
		if stdin, err = os.ReadFile(args[n-1]); err != nil {
			t.Fatal(err)
		}
		args = args[:n-2]
	}
	var stdout, stderr bytes.Buffer
	still := func() float64 { return 0 }
	c := &console{in: bytes.NewReader(stdin), out: &stdout, err: &stderr, clock: still, cpu: still, hardware: noHardware(), now: func() time.Time { return time.Unix(0, 0) }}
	code := c.run(context.Background(), args)
	var out strings.Builder
	for _, l := range []struct {
		mark string
		text string
	}{{"", stdout.String()}, {"! ", stderr.String()}} {
		for line := range strings.Lines(l.text) {
			out.WriteString(l.mark + strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	if code != 0 {
		fmt.Fprintf(&out, "exit %d\n", code)
	}
	return out.String()
}

// noHardware is a host without GPUs, whatever this one has.
func noHardware() hardware {
	none := fmt.Errorf("%w: none in this test", gpu.ErrNoDevice)
	return hardware{
		host:   func() nvml.Host { return nvml.Host{} },
		pci:    func() string { return "" },
		detect: func() (*nvml.Inventory, error) { return nil, none },
		watch:  func() (monitor, error) { return nil, none },
		open:   func(string, string) (gpu.Driver, gpu.BLAS, error) { return nil, nil, none },
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			old := "(end)"
			if i < len(w) {
				old = w[i]
			}
			return fmt.Sprintf("line %d: %s\n   want: %s", i+1, g[i], old)
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// TestExitCodes: every error has its code, however deeply it is wrapped.
func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{fmt.Errorf("w: %w", usagef("x")), 2},
		{fmt.Errorf("w: %w", problem.ErrInfeasible), 3},
		{fmt.Errorf("w: %w", context.Canceled), 130},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: exit %d, want %d", c.err, got, c.want)
		}
	}
}
