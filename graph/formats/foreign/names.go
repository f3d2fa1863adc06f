package foreign

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names hands out names that differ, of one line each.
type Names struct {
	taken map[string]bool
	next  map[string]int
}

// NewNames returns Names of which none is taken.
func NewNames() *Names { return &Names{map[string]bool{}, map[string]int{}} }

// Take returns want, or want with the first free number from 1 where it is taken.
func (n *Names) Take(want string) string {
	want = Clean(want)
	name := want
	for name == "" || n.taken[name] {
		n.next[want]++
		name = fmt.Sprintf("%s#%d", want, n.next[want])
	}
	n.taken[name] = true
	return name
}

// Clean returns s with what messages and files cannot show replaced by underscores.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
			return '_'
		}
		return r
	}, s)
}

// maxShown is how many characters of a file's text a message shows.
const maxShown = 80

// Brief is Clean of no more than a line's worth of s.
func Brief(s string) string {
	n := 0
	for at := range s {
		if n == maxShown {
			return Clean(s[:at]) + "..."
		}
		n++
	}
	return Clean(s)
}
