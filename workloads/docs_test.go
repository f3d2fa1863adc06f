package workloads

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"placer/graph/train"
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

// TestDocsChoices keeps who makes which choice in docs/workloads.md as the families have it.
func TestDocsChoices(t *testing.T) {
	data, err := os.ReadFile("../docs/workloads.md")
	if err != nil {
		t.Fatal(err)
	}
	who := func(has func(*common) bool) string {
		var names []string
		for _, f := range families() {
			if has(f.model.base()) {
				names = append(names, "`"+f.name+"`")
			}
		}
		return strings.Join(names, ", ")
	}
	for choice, want := range map[string]string{
		"clipping by global norm": who(func(c *common) bool { return c.train.ClipGlobalNorm }),
		"gated gradients":         "gated: " + who(func(c *common) bool { return c.train.GateGradients }),
		"optimizer":               who(func(c *common) bool { return c.train.Optimizer == train.Momentum }) + " momentum, all others Adam",
		"batch size known when the graph is built or not": "unknown: " + who(func(c *common) bool { return !c.train.StaticShapes }),
	} {
		_, row, ok := strings.Cut(string(data), "\n| "+choice+" |")
		row, _, _ = strings.Cut(row, "\n")
		if got := strings.Split(row, "|"); !ok || len(got) != 3 || strings.TrimSpace(got[1]) != want {
			t.Errorf("%s: %q, want %q", choice, row, want)
		}
	}
	for _, f := range families() {
		if o := f.model.base().train.Optimizer; o != train.Adam && o != train.Momentum {
			t.Errorf("%s trains with %v, which the page does not say", f.name, o)
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
