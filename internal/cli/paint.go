package cli

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"

	"golang.org/x/term"

	"placer/internal/report"
)

// Colours of a terminal, as ECMA-48 numbers them.
const (
	strong = "1"
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// isTerminal reports whether w is one.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// colourful reports whether what goes to w may have colours: a terminal that knows them,
// unless NO_COLOR is set (no-color.org).
func colourful(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// paint puts text in a colour, where on is set.
func paint(on bool, colour, text string) string {
	if !on || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// writeText writes a document for people to stdout, on a terminal with colours.
func (c *console) writeText(write func(io.Writer) error) error {
	columns := func(w io.Writer) io.Writer {
		if c.wide {
			return report.Wide(w)
		}
		return w
	}
	if !colourful(c.out) {
		return write(columns(c.out))
	}
	var plain bytes.Buffer
	if err := write(columns(&plain)); err != nil {
		return err
	}
	_, err := io.WriteString(c.out, paintTables(plain.String()))
	return err
}

var (
	rule    = regexp.MustCompile(`^-+$`)
	bestRow = regexp.MustCompile(`^ \S+ \* |^\* best`)
)

// paintTables colours the tables of a document: the head of each, which is the line above
// a rule, and the row and the line of the best method, which have a star.
func paintTables(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch {
		case i+1 < len(lines) && rule.MatchString(lines[i+1]):
			lines[i] = paint(true, strong, line)
		case rule.MatchString(line):
			lines[i] = paint(true, faint, line)
		case bestRow.MatchString(line):
			lines[i] = paint(true, green, line)
		}
	}
	return strings.Join(lines, "\n")
}
