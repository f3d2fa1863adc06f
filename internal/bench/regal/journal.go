package regal

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"placer/baselines/regal/rivals"
	"placer/internal/bench"
	"placer/internal/fsx"
	"placer/internal/jsonx"
	"placer/internal/report"
)

// The files of a comparison's folder.
const (
	runFile    = "run.json"
	graphsFile = "graphs.jsonl" // one graph a line, in the order they ended
	resultFile = "result.json"
	textFile   = "result.txt"
	rowsCSV    = "rows.csv"
	graphsCSV  = "graphs.csv" // one method on one graph a line
)

// run says what a folder's results depend on.
type run struct {
	Format      string   `json:"format"`
	Task        string   `json:"task"`
	Graphs      int      `json:"graphs,omitempty"`
	Files       []string `json:"files,omitempty"` // names with the hashes of contents
	Workloads   []string `json:"workloads,omitempty"`
	Copies      int      `json:"copies,omitempty"`
	GPU         string   `json:"gpu,omitempty"`
	Devices     int      `json:"devices"`
	Memory      int64    `json:"memory"`
	Seed        uint64   `json:"seed"`
	Evaluations int      `json:"evaluations"`
	Methods     []string `json:"methods"`
	Weights     []string `json:"weights,omitempty"` // files, as above
	CPSATWork   float64  `json:"cpsat_work,omitempty"`
	Notes       []string `json:"notes"`
}

func newRun(c *Config, doc *report.Regal, methods []rivals.Method) (r run, err error) {
	r = run{Format: "placer bench regal run 1", Task: doc.Task, Devices: doc.Devices, Memory: doc.Memory, Seed: c.Seed, Evaluations: c.Evaluations, Notes: doc.Notes}
	if c.synthetic() {
		r.Graphs = c.Graphs
	} else {
		r.Workloads, r.Copies, r.GPU = c.Workloads, c.Copies, c.GPU
	}
	for _, m := range methods {
		r.Methods = append(r.Methods, m.Name)
		if m.Name == "CP-SAT" {
			r.CPSATWork = c.CPSATWork
		}
	}
	if r.Files, err = identify(c.Files); err != nil {
		return r, err
	}
	r.Weights, err = identify(slices.Concat([]string{c.GAS}, c.REGAL))
	return r, err
}

// identify returns the names of files with the hashes of their contents.
func identify(files []string) (all []string, err error) {
	for _, file := range files {
		if file == "" || file == none {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		all = append(all, filepath.Base(file)+" "+hex.EncodeToString(sum[:8]))
	}
	return all, nil
}

// journal is the folder of a comparison. Without one it keeps nothing.
type journal struct {
	dir     string
	folder  io.Closer // claimed
	lines   *fsx.Lines
	known   map[int]rivals.Graph
	methods []string
}

// journalLine is a line of the journal.
type journalLine struct {
	Number int `json:"number"`
	rivals.Graph
}

// openJournal makes the folder of c, or opens that of an earlier run with the same
// settings.
func openJournal(c *Config, doc *report.Regal, methods []rivals.Method) (*journal, error) {
	if c.Out == "" {
		return &journal{}, nil
	}
	run, err := newRun(c, doc, methods)
	if err != nil {
		return nil, err
	}
	want, err := json.MarshalIndent(run, "", "  ")
	if err != nil {
		return nil, err
	}
	folder, err := fsx.OpenFolder(c.Out)
	if err != nil {
		return nil, err
	}
	j := &journal{dir: c.Out, folder: folder, known: map[int]rivals.Graph{}, methods: run.Methods}
	if err := j.open(c, want); err != nil {
		folder.Close()
		return nil, err
	}
	return j, nil
}

// open reads what an earlier run with the settings want has left, or begins one.
func (j *journal) open(c *Config, want []byte) error {
	switch have, err := os.ReadFile(j.path(runFile)); {
	case errors.Is(err, fs.ErrNotExist):
		err = fsx.WriteFile(j.path(runFile), func(w io.Writer) error {
			_, err := w.Write(append(want, '\n'))
			return err
		})
		if err != nil {
			return err
		}
	case err != nil:
		return err
	case !bytes.Equal(bytes.TrimSpace(have), want):
		return bench.ConfigErrorf("%s holds a run with other flags: name another folder", c.Out)
	}
	var err error
	j.lines, err = fsx.OpenLines(j.path(graphsFile), func(line []byte) error {
		var x journalLine
		if err := json.Unmarshal(line, &x); err != nil {
			return err
		}
		if _, twice := j.known[x.Number]; twice || len(x.Runs) != len(j.methods) {
			return fmt.Errorf("graph %d is there twice or lacks methods", x.Number)
		}
		j.known[x.Number] = x.Graph
		return nil
	})
	return err
}

func (j *journal) path(name string) string { return filepath.Join(j.dir, name) }

// add appends the results on graph k.
func (j *journal) add(k int, g rivals.Graph) error {
	if j.lines == nil {
		return nil
	}
	line, err := json.Marshal(journalLine{k, g})
	if err != nil {
		return err
	}
	return j.lines.Add(line)
}

// finish writes the tables.
func (j *journal) finish(doc *report.Regal, graphs []rivals.Graph) error {
	if j.lines == nil {
		return nil
	}
	for name, write := range map[string]func(io.Writer) error{
		resultFile: func(w io.Writer) error { return jsonx.Write(w, doc) },
		textFile:   doc.WriteText,
		rowsCSV:    doc.WriteCSV,
		graphsCSV:  func(w io.Writer) error { return writeGraphs(w, j.methods, graphs) },
	} {
		if err := fsx.WriteFile(j.path(name), write); err != nil {
			return err
		}
	}
	return nil
}

func (j *journal) close() {
	if j.lines != nil {
		j.lines.Close()
		j.folder.Close()
	}
}

// writeGraphs writes what each method came to on each graph, a header first.
func writeGraphs(w io.Writer, methods []string, graphs []rivals.Graph) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"graph", "ops", "bound", "method", "cost", "time", "peak", "fits", "evaluations", "seconds"}}
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	for _, g := range graphs {
		for m, r := range g.Runs {
			if r.Skipped {
				continue
			}
			rows = append(rows, []string{g.Name, strconv.Itoa(g.Ops), number(g.Bound), methods[m], number(r.Cost), number(r.Time), strconv.FormatInt(r.Peak, 10),
				strconv.FormatBool(r.Feasible()), strconv.Itoa(r.Evaluations), strconv.FormatFloat(r.Seconds, 'f', 6, 64)})
		}
	}
	return c.WriteAll(rows)
}
