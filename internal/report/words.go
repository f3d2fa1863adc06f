package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"placer/internal/words"
)

// percentOf prints x, 0.25 for a quarter, in percent. What rounds to nothing has no
// sign.
func percentOf(x float64) string {
	if s := fmt.Sprintf("%.1f%%", 100*x); s != "-0.0%" {
		return s
	}
	return "0.0%"
}

// share prints a share: 0.25 gives "25.0%", what is longer than the human
// expert's step is negative. Nil gives "-".
func share(share *float64) string { return orDash(share, percentOf) }

// orDash prints *x in the form that as gives it, and nothing as "-".
func orDash[T any](x *float64, as func(float64) T) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprint(as(*x))
}

// percent prints a/b.
func percent(a, b float64) string { return fmt.Sprintf("%.1f%%", 100*a/b) }

// devices is n of them in words.
func devices(n int) string { return words.Count(n, "device", "devices") }

// wrapped returns the words of s in lines of at most width characters, one at least; a
// longer word has a line of its own.
func wrapped(s string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(s) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
