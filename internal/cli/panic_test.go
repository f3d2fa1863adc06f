package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"placer/internal/parallel"
)

// TestPanic: a panic of a command, or of a goroutine that it waits for, is exit code
// 1 and one line.
func TestPanic(t *testing.T) {
	for _, name := range []string{"here", "there"} {
		err := execute(context.Background(), &cobra.Command{SilenceErrors: true, SilenceUsage: true, Args: cobra.ArbitraryArgs, Run: func(*cobra.Command, []string) {
			if name == "here" {
				panic("broken here")
			}
			var g parallel.Group
			g.Go(func() { panic("broken there") })
			g.Wait()
		}})
		if err == nil || exitCode(err) != exitFailed || !strings.HasSuffix(oneLine(err.Error()), "broken "+name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, exit code %d", err, exitCode(err))
		}
	}
}

// TestImpossibleLinks: machines that took the critical path's walk in a circle or
// the program down are refused with the file and the place.
func TestImpossibleLinks(t *testing.T) {
	for _, c := range []struct{ bandwidth, latency, want string }{
		{"1e-2 B/s", "5 us", "bandwidth is 0.01 B/s, want 1 B/s"},
		{"1e-300 B/s", "5 us", ", want "},
		{"11 GB/s", "1e308 s", ", want "},
	} {
		machine := `{"format": "placer machine 1", "name": "box", "models": {"M": {"kind": "gpu", "arch": "sm_60", "capacity": "16 GB", "memory_bandwidth": "700 GB/s",
			"peak": {"f32": "9 TFLOP/s"}, "launch": "5 us", "sms": 56, "source": "s"}}, "devices": [{"name": "gpu:[0-1]", "model": "M"}],
			"cables": [{"ends": ["gpu:0", "gpu:1"], "bandwidth": "` + c.bandwidth + `", "latency": "` + c.latency + `", "source": "s"}]}`
		var out, err bytes.Buffer
		code := Main([]string{"search", "--workload", "rnnlm2", "--machine", "-", "--evaluations", "100"}, strings.NewReader(machine), &out, &err)
		if code != exitFailed && code != exitUsage || !strings.Contains(err.String(), c.want) || strings.Count(err.String(), "\n") != 1 {
			t.Errorf("%s, %s: exit code %d, %q", c.bandwidth, c.latency, code, err.String())
		}
	}
}
