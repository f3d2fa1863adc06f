//go:build !light

package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestStrayArguments: a word that is no flag is an error of every command that takes none,
// before anything is begun.
func TestStrayArguments(t *testing.T) {
	takes := []string{"placer report", "placer diff"}
	var walk func(*cobra.Command)
	walk = func(of *cobra.Command) {
		for _, sub := range of.Commands() {
			walk(sub)
			path := sub.CommandPath()
			if !sub.Runnable() || slices.Contains(takes, path) {
				continue
			}
			got := command(t, append(strings.Fields(path)[1:], "stray"))
			if !strings.Contains(got, "exit 2") || !strings.Contains(got, "stray") {
				t.Errorf("%s stray:\n%s", path, got)
			}
		}
	}
	walk(newConsole(nil, nil, nil).root())
}

// TestNumbersOutOfRange: what cannot be meant is a mistake in the command line.
func TestNumbersOutOfRange(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	graph := []string{"--workload", "rnnlm:layers=1,unroll=2", "--gpus", "2"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"worker", "--hub", "nats://127.0.0.1:1", "--slots", "5000"}, "--slots 5000: want 1 to 4096"},
		{[]string{"worker", "--hub", "nats://127.0.0.1:70000"}, "port 70000"},
		{[]string{"worker", "keys", "-o", out, "--valid", "-1h"}, "valid for -1h0m0s"},
		{[]string{"worker", "keys", "-o", out, "--host", ""}, "at least one"},
		{[]string{"worker", "keys", "-o", out, "--workers", "1000000000"}, "want 1 to 100000"},
		{append([]string{"search", "--out", out, "--config", settingsFile(t, `"hub": {"address": "http://127.0.0.1:4222"}`)}, graph...), "begins with nats://"},
		{[]string{"pretrain", "--out", out, "--hours", "NaN"}, "--hours NaN"},
		{[]string{"pretrain", "--out", out, "--hours", "Inf"}, "--hours +Inf"},
		{[]string{"pretrain", "--out", out, "--prior", "Inf"}, "must be finite"},
		{append([]string{"finetune", "--rate", "Inf"}, graph...), "must be finite"},
		{append([]string{"finetune", "--workers", "100000"}, graph...), "100000 workers"},
		{append([]string{"verdict", "--evaluations", "0"}, graph[:2]...), "--evaluations 0"},
		{append([]string{"strategies", "--evaluations", "0"}, graph...), "--budget 0 leaves the search out"},
		{append([]string{"replan", "--plan", "plan.json", "--max-move", "-5 GB"}, graph...), "--max-move: -5 GB"},
	} {
		if got := command(t, c.args); !strings.Contains(got, c.want) || !strings.Contains(got, "exit 2") {
			t.Errorf("%v, want %q:\n%s", c.args, c.want, got)
		}
	}
}

// TestReportOfAnotherDocument: a file that is no document of bench hw is named by what it is.
func TestReportOfAnotherDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(path, []byte(`{"format": "placer plan 1", "graph": {}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := command(t, []string{"report", path}); !strings.Contains(got, `format is "placer plan 1", want "placer hardware 1", or a folder`) {
		t.Error(got)
	}
}
