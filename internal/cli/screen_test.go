//go:build unix

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// TestScreens runs commands on a pseudo-terminal of 80 and of 120 columns, with colours
// and with NO_COLOR, and compares what is on the screen in the end with the golden files
// of testdata/screens. The clock stands still. Colours are written as {32} and {0}.
func TestScreens(t *testing.T) {
	for _, columns := range []int{80, 120} {
		for _, colours := range []bool{true, false} {
			name := fmt.Sprintf("%d-plain", columns)
			if colours {
				name = fmt.Sprintf("%d-colours", columns)
			}
			t.Run(name, func(t *testing.T) {
				path, err := filepath.Abs(filepath.Join("testdata", "screens", name+".txt"))
				if err != nil {
					t.Fatal(err)
				}
				t.Setenv("TERM", "xterm-256color")
				t.Setenv("NO_COLOR", map[bool]string{false: "1"}[colours])
				t.Chdir(t.TempDir())
				var all strings.Builder
				for _, line := range []string{
					"search --workload rnnlm:layers=2,unroll=3 --gpus 2 --methods human,single,heft,random-best --evaluations 50 --workers 1 --out run",
					"simulate --workload rnnlm:layers=2,unroll=3 --gpus 2 --plan run/plan.json",
					"compare --workload rnnlm:layers=1,unroll=2 --gpus 2 --methods human,single,random-best --evaluations 20 --seeds 6 --workers 1 --out both",
					"workloads",
					"search --workload nothing",
				} {
					fmt.Fprintf(&all, "$ placer %s\n%s", line, onTerminal(t, columns, strings.Fields(line)))
				}
				got := all.String()
				if strings.Contains(got, "{") != colours {
					t.Errorf("the screen has colours: %v", !colours)
				}
				if *update {
					if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if got != string(want) {
					t.Errorf("%s differs; got\n%s", filepath.Base(path), firstDifference(got, string(want)))
				}
			})
		}
	}
}

// onTerminal runs a command on a terminal so wide and returns its screen.
func onTerminal(t *testing.T, columns int, args []string) string {
	t.Helper()
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminal: %v", err)
	}
	if err := pty.Setsize(theirs, &pty.Winsize{Rows: 200, Cols: uint16(columns)}); err != nil {
		t.Fatal(err)
	}
	written := make(chan []byte)
	go func() {
		b, _ := io.ReadAll(ours) // ends with an error when the other end is closed
		written <- b
	}()
	still := func() float64 { return 0 }
	c := &console{in: strings.NewReader(""), out: theirs, err: theirs, clock: still, cpu: still, hardware: noHardware(), now: func() time.Time { return time.Unix(0, 0) }}
	c.run(context.Background(), args)
	theirs.Close()
	b := <-written
	ours.Close()
	s := screen{columns: columns}
	s.write(string(b))
	return s.String()
}

// screen is what a terminal shows, without an end below: rows of cells, each with the
// text that chooses its colours.
type screen struct {
	columns  int
	rows     [][]cell
	row, col int
	style    string
}

type cell struct {
	r     rune
	style string
}

var escape = regexp.MustCompile(`^\x1b\[([0-9;?]*)([A-Za-z])`)

func (s *screen) write(text string) {
	for len(text) > 0 {
		if m := escape.FindStringSubmatch(text); m != nil {
			s.control(m[1], m[2])
			text = text[len(m[0]):]
			continue
		}
		r := []rune(text[:min(4, len(text))])[0]
		text = text[len(string(r)):]
		switch r {
		case '\r':
			s.col = 0
		case '\n':
			s.row++
		default:
			if s.col == s.columns { // the terminal wraps
				s.row, s.col = s.row+1, 0
			}
			s.put(r)
		}
	}
}

// at makes row k be there.
func (s *screen) at(k int) *[]cell {
	for len(s.rows) <= k {
		s.rows = append(s.rows, nil)
	}
	return &s.rows[k]
}

func (s *screen) put(r rune) {
	row := s.at(s.row)
	for len(*row) <= s.col {
		*row = append(*row, cell{r: ' '})
	}
	(*row)[s.col] = cell{r, s.style}
	s.col++
}

// control follows the escape sequences that our programs use.
func (s *screen) control(numbers, what string) {
	n, _ := strconv.Atoi(numbers)
	switch what {
	case "m":
		if s.style = numbers; numbers == "0" {
			s.style = ""
		}
	case "A":
		s.row = max(0, s.row-max(1, n))
	case "K":
		if row := s.at(s.row); n == 0 && len(*row) > s.col {
			*row = (*row)[:s.col]
		} else if n == 2 {
			*row = nil
		}
	case "J":
		row := s.at(s.row)
		*row = (*row)[:min(len(*row), s.col)]
		s.rows = s.rows[:s.row+1]
	case "h", "l": // the cursor is shown or not
	default:
		s.write("<escape " + numbers + what + ">")
	}
}

// String returns the rows, trimmed, with colours as {number}.
func (s *screen) String() string {
	var b strings.Builder
	for _, row := range s.rows {
		style, line := "", strings.Builder{}
		for _, c := range row {
			if c.style != style {
				if style != "" {
					line.WriteString("{0}")
				}
				if c.style != "" {
					line.WriteString("{" + c.style + "}")
				}
				style = c.style
			}
			line.WriteRune(c.r)
		}
		if style != "" {
			line.WriteString("{0}")
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// TestScreenEmulator: what the golden files rest on.
func TestScreenEmulator(t *testing.T) {
	s := screen{columns: 5}
	s.write("abcdefg\r\n\x1b[31mred\x1b[0m\r\nbar\r\x1b[Jx\r\n\x1b[1A\x1b[2Ky")
	if got, want := s.String(), "abcde\nfg\n{31}red{0}\ny\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
