package report

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for x, want := range map[float64]string{0: "0.0%", -0.0004: "0.0%", -0.0006: "-0.1%", 0.25: "25.0%", 0.12345: "12.3%"} {
		if got := percentOf(x); got != want {
			t.Errorf("%g is %s, want %s", x, got, want)
		}
	}
	for n, want := range map[int]string{0: "0 devices", 1: "1 device", 8: "8 devices"} {
		if got := devices(n); got != want {
			t.Errorf("%d are %s, want %s", n, got, want)
		}
	}
}

func TestWrapped(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{{"", 5, ""}, {"a bc def", 4, "a bc|def"}, {"a  bc", 1, "a|bc"}, {"longer than it", 4, "longer|than|it"}, {"élan vital", 10, "élan vital"}} {
		if got := strings.Join(wrapped(c.text, c.width), "|"); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

// TestProse: paragraphs fit their width, and the ends of lines behind them stay.
func TestProse(t *testing.T) {
	var out strings.Builder
	pg := newPage(&out)
	pg.prosef("%s\n\n", strings.Repeat("word ", 60))
	lines := strings.Split(out.String(), "\n")
	for _, l := range lines {
		if len(l) > textWidth {
			t.Errorf("%d columns: %s", len(l), l)
		}
	}
	if len(lines) < 5 || lines[len(lines)-2] != "" || !strings.HasPrefix(lines[1], "  word") {
		t.Errorf("got %q", lines)
	}
}

// TestPartitioningFits: the table and its footer fit 100 columns.
func TestPartitioningFits(t *testing.T) {
	x := 1234.56
	var out strings.Builder
	p := Partitioning{Moves: 1000000, Rows: []PartitioningRow{{Input: "gnmt_training.json", Nodes: 1000, Published: &x, Linear: x, Layers: x, LayersWas: &x, Contiguous: x, Downsets: 123456, Seconds: 100, Free: x, FreeSeconds: 100, Bound: x, Expert: &x, ExpertWas: &x}}}
	if err := p.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, l := range strings.Split(out.String(), "\n") {
		if len(l) > 100 { // its table has 13 columns
			t.Errorf("%d columns: %s", len(l), l)
		}
	}
}

// TestCommandLines: flags go over several lines of a terminal as one command, a configuration
// stays what it is.
func TestCommandLines(t *testing.T) {
	flags := "--first-of-several-flags 1 --second-of-several-flags with-a-value-of-its-own --third --fourth-of-several-flags 4"
	got := commandLines(flags)
	if joined := strings.Join(strings.Fields(strings.ReplaceAll(got, " \\\n", " ")), " "); joined != flags {
		t.Errorf("%q is read as %q", got, joined)
	}
	for _, line := range strings.Split(strings.TrimSuffix(got, "\n"), "\n") {
		if len(line) > textWidth || strings.HasSuffix(line, "--second-of-several-flags \\") {
			t.Errorf("line %q", line)
		}
	}
	config := `{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 2}}`
	if got := commandLines(config); !json.Valid([]byte(got)) {
		t.Errorf("%q is no JSON", got)
	}
}
