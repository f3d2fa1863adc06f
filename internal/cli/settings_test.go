package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// The help of search fits a screen and has every flag under a heading.
func TestSearchHelp(t *testing.T) {
	help := command(t, []string{"search", "--help"})
	lines := strings.Split(strings.TrimSuffix(help, "\n"), "\n")
	if len(lines) > 50 {
		t.Errorf("%d lines, want 50 at most:\n%s", len(lines), help)
	}
	for _, l := range lines {
		if len(l) > helpWidth {
			t.Errorf("%d columns: %s", len(l), l)
		}
	}
	(&console{}).searchCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(help, "--"+f.Name+" ") {
			t.Errorf("no --%s", f.Name)
		}
	})
}

// printed returns what search --print-config prints.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	got := command(t, append([]string{"search", "--print-config"}, args...))
	if strings.Contains(got, "exit ") {
		t.Fatal(got)
	}
	return got
}

// What --print-config prints is a file for --config that asks for the same, flags
// beat the file, and nothing else is written.
func TestPrintConfig(t *testing.T) {
	model := functionsModel(t)
	t.Chdir(t.TempDir())
	for _, args := range [][]string{
		{"--workload", smallGraph, "--gpus", "2"},
		{"--workload", smallGraph, "--gpu", "a100", "--gpus", "2", "--cpu", "--evaluations", "30", "--seed", "18446744073709551615", "--methods", "human,anneal", "--tasks", "place", "--workers", "1"},
		{"--workload", smallGraph, "--objective", "memory", "--budget", "90s", "--contention", "none"},
		{"--graph", model, "--train", "adam", "--master-weights", "--dim", "batch=4", "--gpus", "2"},
	} {
		first := printed(t, args...)
		if again := printed(t, "--config", settingsText(t, first)); again != first {
			t.Errorf("%v:\n%s, given back\n%s", args, first, again)
		}
	}
	file := settingsText(t, printed(t, "--workload", smallGraph, "--gpu", "a100", "--methods", "human,single", "--budget", "90s", "--seed", "4"))
	var got settings
	if err := json.Unmarshal([]byte(printed(t, "--config", file, "--methods", "human", "--machine", machineFile(t), "--seed", "5", "--workers", "3")), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Methods) != 1 || got.Machine == "" || got.GPU != "" || got.Seed != 5 || got.Workers != 3 || got.Budget.Seconds != 90 {
		t.Errorf("flags over a file: %+v", got)
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// Workers evaluate what policies sample: where a hub is named, unnamed methods are those.
func TestMethodsWithHub(t *testing.T) {
	var got settings
	file := settingsText(t, `{"format": "placer run 1", "hub": {"address": "127.0.0.1:4222"}}`)
	if err := json.Unmarshal([]byte(printed(t, "--config", file, "--workload", smallGraph, "--gpus", "2")), &got); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(got.Methods, "GO-one") || slices.Contains(got.Methods, "portfolio") {
		t.Error(got.Methods)
	}
}

// A run's own config.json is a file for --config, as long as its graph and machine
// are what they were.
func TestConfigOfRun(t *testing.T) {
	t.Chdir(t.TempDir())
	search := []string{"search", "-q", "--out"}
	for _, args := range [][]string{
		{"first", "--workload", smallGraph, "--gpus", "2", "--methods", "human,random-best", "--evaluations", "20", "--tasks", "place"},
		{"second", "--config", "first/config.json"},
	} {
		if got := command(t, append(search, args...)); strings.Contains(got, "exit") {
			t.Fatal(got)
		}
	}
	for _, name := range []string{"config.json", "plan.json"} {
		if !bytes.Equal(read(t, "first", name), read(t, "second", name)) {
			t.Errorf("another %s", name)
		}
	}
	if got := command(t, append(search, "third", "--config", "first/config.json", "--gpus", "3")); !strings.Contains(got, "no longer what the run was about\nexit 1") {
		t.Error(got)
	}
}

// settingsText writes a file for --config.
func settingsText(t *testing.T, text string) string {
	t.Helper()
	path := t.TempDir() + "/settings.json"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// machineFile writes a machine file.
func machineFile(t *testing.T) string {
	t.Helper()
	path := t.TempDir() + "/machine.json"
	if got := command(t, []string{"machines", "split", "--gpu", "a100", "-o", path}); got != "" {
		t.Fatal(got)
	}
	return path
}

// Settings say their format: a document without it is refused with what to write.
func TestSettingsSayTheirFormat(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, text := range []string{"{}", `{"workers": 1}`, `{"format": "placer run 2"}`} {
		if err := os.WriteFile("settings.json", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, more := range []string{"--workload=rnnlm2", "--resume=run"} {
			got := command(t, []string{"search", "--config", "settings.json", "--print-config", more})
			if !strings.Contains(got, `"placer run 1"`) || !strings.HasSuffix(got, "exit 1\n") {
				t.Errorf("%s: %s", text, got)
			}
		}
	}
}
