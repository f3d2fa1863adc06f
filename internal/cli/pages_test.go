package cli

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// recordedOutput returns the stdout of every command of a transcript, in lines, by its command
// line without -q.
func recordedOutput(t *testing.T, path string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	command := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if after, ok := strings.CutPrefix(line, "$ placer "); ok {
			command = strings.TrimSuffix(after, " -q")
			all[command] = []string{}
		} else if command != "" && !strings.HasPrefix(line, "! ") {
			all[command] = append(all[command], line)
		}
	}
	return all
}

// block is what a page shows of a command's output.
type block struct {
	command string
	lines   []string
}

// blocks returns the fenced blocks without a language of a page, each with the command line,
// indented by four, that stands last before it.
func blocks(page string) (all []block) {
	command, open, code := "", false, false
	for line := range strings.Lines(page) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case code:
			code = line != "```"
		case strings.HasPrefix(line, "```") && line != "```" && !open:
			code = true // of a language
		case line == "```" && !open:
			open = true
			all = append(all, block{command: command})
		case line == "```":
			open = false
		case open:
			last := &all[len(all)-1]
			last.lines = append(last.lines, line)
		case strings.HasPrefix(line, "    placer "):
			command, _, _ = strings.Cut(strings.TrimPrefix(line, "    placer "), " #")
			command = strings.TrimSpace(command)
		}
	}
	return all
}

// missing returns the first line of what is shown that output lacks: between lines "..." what
// is shown stands in output line by line, and later parts stand later. It is "" where nothing
// is missing.
func missing(shown, output []string) string {
	start := 0 // of the part in output
	for len(shown) > 0 {
		end := slices.Index(shown, "...")
		if end < 0 {
			end = len(shown)
		}
		part := shown[:end]
		shown = shown[min(end+1, len(shown)):]
		for ; ; start++ {
			if start+len(part) > len(output) {
				return part[0]
			}
			if slices.Equal(part, output[start:start+len(part)]) {
				start += len(part)
				break
			}
		}
	}
	return ""
}

// TestPagesShowTranscripts: what the pages show below a command is what a transcript has for
// it, which TestTranscripts runs.
func TestPagesShowTranscripts(t *testing.T) {
	recorded := recordedOutput(t, "testdata/transcripts/docs.txt")
	for page, least := range map[string]int{"../../README.md": 1, "../../docs/answers.md": 7, "../../docs/strategies.md": 3, "../../docs/adding-a-machine.md": 1, "../../docs/pytorch.md": 2} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		shown := blocks(string(text))
		if len(shown) < least {
			t.Errorf("%s shows the output of %d commands, want %d", page, len(shown), least)
		}
		for _, b := range shown {
			output, ok := recorded[b.command]
			if !ok {
				t.Errorf("%s shows the output of %q, which docs.txt does not run", page, b.command)
			} else if line := missing(b.lines, output); line != "" {
				t.Errorf("%s: the output of %q lacks %q", page, b.command, line)
			}
		}
	}
}

// TestOutputFitsTerminal: what commands print for people has at most 80 columns.
func TestOutputFitsTerminal(t *testing.T) {
	for _, name := range []string{"docs", "search", "tasks", "strategies", "fits", "schedule"} {
		for command, lines := range recordedOutput(t, "testdata/transcripts/"+name+".txt") {
			if strings.Contains(command, "--help") || strings.Contains(command, "--json") || strings.Contains(command, " - ") || strings.HasSuffix(command, " -") || strings.HasPrefix(command, "export") {
				continue // for programs, or TestHelpWidth
			}
			for _, l := range lines {
				if strings.HasPrefix(l, "# ") || strings.HasPrefix(l, "-- ") {
					break // what follows the output
				}
				if n := len([]rune(l)); n > 80 {
					t.Errorf("%s: %s: %d columns: %s", name, command, n, l)
				}
			}
		}
	}
}

func TestMissing(t *testing.T) {
	output := []string{"a", "b", "c", "b", "d"}
	for _, c := range []struct {
		shown []string
		want  string
	}{
		{[]string{"a", "b"}, ""},
		{[]string{"...", "b", "d"}, ""},
		{[]string{"a", "...", "c", "...", "d"}, ""},
		{[]string{"a", "c"}, "a"},
		{[]string{"c", "...", "a"}, "a"},
		{[]string{"x"}, "x"},
	} {
		if got := missing(c.shown, output); got != c.want {
			t.Errorf("%q lacks %q, want %q", c.shown, got, c.want)
		}
	}
}
