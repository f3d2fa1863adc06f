package spell_test

import (
	"fmt"
	"strings"
	"testing"

	"placer/internal/spell"
)

func TestNear(t *testing.T) {
	for name, test := range map[string]struct{ names, want string }{
		"gnmt88":       {"rnnlm2 gnmt2 gnmt4 gnmt8", "gnmt8 gnmt2 gnmt4"},
		"incep":        {"gnmt8 inception inception64", "inception inception64"},
		"METS":         {"human metis", "metis"},
		"local-search": {"anneal local", "local"},
		"foo":          {"etf heft human", ""},
		"x":            {"a b", ""}, // one edit makes any letter of any
		"gp":           {"gpu gpus cpu", "gpu"},
		"":             {"a", ""},
		"workers":      {"worker workload", "worker"},
	} {
		if got := strings.Join(spell.Near(name, strings.Fields(test.names)), " "); got != test.want {
			t.Errorf("%q among %s: %q, want %q", name, test.names, got, test.want)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"abc", "abc", 0}, {"ab", "ba", 2}} {
		if got := spell.Edits(test.a, test.b); got != test.want || spell.Edits(test.b, test.a) != test.want {
			t.Errorf("%q to %q: %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

func ExampleNear() {
	fmt.Println(spell.Near("worklod", []string{"graph", "machine", "workload"}))
	// Output: [workload]
}
