package formats_test

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"placer/graph"
	"placer/internal/doctest"
	"placer/units"
)

// Unit is what one unit of time of a file stands for.
const Unit units.Seconds = 1e-3

// Import reads a task graph: its ops and their times, [N]. name is the file's, for
// errors and for the graph.
func Import(data []byte, name string) (*graph.Graph, []units.Seconds, error) {
	b := graph.NewBuilder(name)
	var seconds []units.Seconds
	var ops []graph.OpID
	header := true
	for number, line := range strings.Split(string(data), "\n") {
		if at := strings.IndexByte(line, '#'); at >= 0 {
			line = line[:at]
		}
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if header { // the number of tasks without the first and the last
			header = false
			continue
		}
		fail := func(format string, a ...any) (*graph.Graph, []units.Seconds, error) {
			return nil, nil, fmt.Errorf("%s:%d: %s", name, number+1, fmt.Sprintf(format, a...))
		}
		var task []int
		for _, f := range fields {
			v, err := strconv.Atoi(f)
			if err != nil || v < 0 {
				return fail("%q is no whole number", f)
			}
			task = append(task, v)
		}
		if len(task) < 3 || task[0] != len(ops) || len(task) != 3+task[2] {
			return fail("want the task's number %d, its time, how many predecessors it has, and those", len(ops))
		}
		id := b.Op(graph.Op{Name: "task " + fields[0], Kind: "Task", Forward: graph.None}, nil)
		for _, before := range task[3:] {
			if before >= len(ops) {
				return fail("predecessor %d comes after the task", before)
			}
			b.Control(ops[before], id)
		}
		ops = append(ops, id)
		seconds = append(seconds, units.Seconds(task[1])*Unit)
	}
	g, err := b.Build()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return g, seconds, nil
}

// Sniff reports whether data is a task graph: a line with one number, then one with
// a task 0 without predecessors.
func Sniff(data []byte) bool {
	first, rest, _ := bytes.Cut(bytes.TrimLeft(data, " \t\r\n"), []byte("\n"))
	second, _, _ := bytes.Cut(rest, []byte("\n"))
	fields := strings.Fields(string(second))
	_, err := strconv.Atoi(string(bytes.TrimSpace(first)))
	return err == nil && len(fields) == 3 && fields[0] == "0" && fields[2] == "0"
}

// TestGuide: the importer that docs/adding-a-graph-format.md adds reads the page's sample
// and says where others are at fault.
func TestGuide(t *testing.T) {
	doctest.Shows(t, "../../docs/adding-a-graph-format.md", "guide_test.go", "// Unit is what")
	tasks := "1\n0 0 0\n1 10 1 0\n2 0 1 1\n"
	g, seconds, err := Import([]byte(tasks), "robot.stg")
	if err != nil || g.NumOps() != 3 || len(seconds) != 3 || seconds[1] != 10*Unit || !Sniff([]byte(tasks)) {
		t.Errorf("%v, times %v: %v", g, seconds, err)
	}
	for text, want := range map[string]string{
		"1\n0 0 0\n1 10 1 7\n": "robot.stg:3: predecessor 7 comes after the task",
		"1\n0 0 0\n1 x 1 0\n":  `robot.stg:3: "x" is no whole number`,
		"1\n0 0 0\n1 10\n":     "robot.stg:3: want the task's number 1,",
	} {
		if _, _, err := Import([]byte(text), "robot.stg"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if Sniff([]byte("0.5\n")) {
		t.Error("a number alone is taken for a task graph")
	}
}
