package report

import (
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
