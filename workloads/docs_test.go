package workloads

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/workloads.md")

// TestDocsTable keeps the tables of docs/workloads.md as the program gives them.
func TestDocsTable(t *testing.T) {
	const file = "../docs/workloads.md"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, part := range []struct{ name, want string }{{"table", table(t)}, {"settings", settings()}} {
		open, end := "<!-- "+part.name+": written by go test ./workloads -run TestDocsTable -update -->\n", "<!-- end of "+part.name+" -->"
		before, rest, opened := strings.Cut(text, open)
		got, after, closed := strings.Cut(rest, end)
		if !opened || !closed {
			t.Fatalf("%s has no marks around its %s", file, part.name)
		}
		if got != part.want && !*update {
			t.Errorf("%s: the %s is out of date, want\n%s", file, part.name, part.want)
		}
		text = before + open + part.want + end + after
	}
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func table(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| name | layers | GPUs | ops | published | difference | edges | FLOPs | parameters |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range List() {
		g := built(t, s.Name)
		gpus, published, off := "", "", ""
		if s.GPUs > 0 {
			gpus = fmt.Sprint(s.GPUs)
		}
		if p := s.PublishedOps; p > 0 {
			published, off = fmt.Sprint(p), fmt.Sprintf("%+.1f%%", 100*(float64(g.NumOps())/float64(p)-1))
		}
		fmt.Fprintf(&b, "| `%s` | %d | %s | %d | %s | %s | %d | %.2f T | %.1f M |\n", s.Name, s.model.depth(), gpus, g.NumOps(), published, off, g.NumEdges(), float64(g.FLOPs())/1e12, float64(g.Params())/1e6)
	}
	return b.String()
}

func settings() string {
	var b strings.Builder
	b.WriteString("| family | settings |\n|---|---|\n")
	for _, f := range families() {
		var names []string
		for _, s := range f.model.settings() {
			names = append(names, s.name)
		}
		fmt.Fprintf(&b, "| `%s` | `%s` |\n", f.name, strings.Join(names, "` `"))
	}
	return b.String()
}
