package onnx

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// clean returns s with what messages and files cannot show replaced by
// underscores.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
			return '_'
		}
		return r
	}, s)
}

// maxShown is how many characters of a name a message shows.
const maxShown = 120

// brief returns s as messages show it: cleaned, and no longer than a line of
// text takes.
func brief(s string) string {
	s = clean(s)
	n := 0
	for at := range s {
		if n == maxShown {
			return s[:at] + "..."
		}
		n++
	}
	return s
}

// names hands out names that are unique in the graph.
type names struct {
	taken map[string]bool
	next  map[string]int
}

func newNames() *names { return &names{taken: map[string]bool{}, next: map[string]int{}} }

// unique returns want, or want with the first free number from 1.
func (n *names) unique(want string) string {
	want = clean(want)
	if want != "" && !n.taken[want] {
		n.taken[want] = true
		return want
	}
	for {
		n.next[want]++
		s := want + "_" + strconv.Itoa(n.next[want])
		if !n.taken[s] {
			n.taken[s] = true
			return s
		}
	}
}
