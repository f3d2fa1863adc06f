package cli

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
	"strconv"

	"placer/baselines/regal/rivals"
	"placer/internal/fsx"
	"placer/report"
)

// The files of a folder of bench regal.
const (
	regalRunFile    = "run.json"
	regalGraphsFile = "graphs.jsonl" // one graph a line, in the order they ended
	regalResultFile = "result.json"
	regalTextFile   = "result.txt"
	regalRowsFile   = "rows.csv"
	regalGraphsCSV  = "graphs.csv" // one method on one graph a line
)

// regalRun says what a folder's results depend on.
type regalRun struct {
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

func newRegalRun(f *regalFlags, doc *report.Regal, methods []rivals.Method) (r regalRun, err error) {
	r = regalRun{Format: "placer bench regal run 1", Task: f.task, Devices: doc.Devices, Memory: doc.Memory, Seed: f.seed, Evaluations: f.evaluations, Notes: doc.Notes}
	if f.task == string(rivals.Synthetic) {
		r.Graphs = f.graphs
	} else {
		r.Workloads, r.Copies, r.GPU = f.workloads, f.copies, f.gpu
	}
	for _, m := range methods {
		r.Methods = append(r.Methods, m.Name)
		if m.Name == "CP-SAT" {
			r.CPSATWork = f.cpsatWork
		}
	}
	named := func(to *[]string, file string) {
		if file == "" || file == "none" || err != nil {
			return
		}
		var data []byte
		if data, err = os.ReadFile(file); err == nil {
			sum := sha256.Sum256(data)
			*to = append(*to, filepath.Base(file)+" "+hex.EncodeToString(sum[:8]))
		}
	}
	for _, file := range f.files {
		named(&r.Files, file)
	}
	for _, file := range append([]string{f.gas}, f.regal...) {
		named(&r.Weights, file)
	}
	return r, err
}

// regalJournal is the folder of --out. Without one it keeps nothing.
type regalJournal struct {
	dir     string
	lines   *fsx.Lines
	known   map[int]rivals.Graph
	methods []string
}

// regalLine is a line of the journal.
type regalLine struct {
	Number int `json:"number"`
	rivals.Graph
}

// openRegal makes the folder of f, or opens that of an earlier run with the same
// flags.
func openRegal(f *regalFlags, doc *report.Regal, methods []rivals.Method) (*regalJournal, error) {
	if f.out == "" {
		return &regalJournal{}, nil
	}
	run, err := newRegalRun(f, doc, methods)
	if err != nil {
		return nil, err
	}
	want, err := json.MarshalIndent(run, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(f.out, 0o755); err != nil {
		return nil, err
	}
	j := &regalJournal{dir: f.out, known: map[int]rivals.Graph{}, methods: run.Methods}
	switch have, err := os.ReadFile(j.path(regalRunFile)); {
	case errors.Is(err, fs.ErrNotExist):
		err = fsx.WriteFile(j.path(regalRunFile), func(w io.Writer) error {
			_, err := w.Write(append(want, '\n'))
			return err
		})
		if err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case !bytes.Equal(bytes.TrimSpace(have), want):
		return nil, usagef("%s holds a run with other flags: name another folder", f.out)
	}
	j.lines, err = fsx.OpenLines(j.path(regalGraphsFile), func(line []byte) error {
		var x regalLine
		if err := json.Unmarshal(line, &x); err != nil {
			return err
		}
		if _, twice := j.known[x.Number]; twice || len(x.Runs) != len(run.Methods) {
			return fmt.Errorf("graph %d is there twice or lacks methods", x.Number)
		}
		j.known[x.Number] = x.Graph
		return nil
	})
	return j, err
}

func (j *regalJournal) path(name string) string { return filepath.Join(j.dir, name) }

// add appends the results on graph k.
func (j *regalJournal) add(k int, g rivals.Graph) error {
	if j.lines == nil {
		return nil
	}
	line, err := json.Marshal(regalLine{k, g})
	if err != nil {
		return err
	}
	return j.lines.Add(line)
}

// finish writes the tables.
func (j *regalJournal) finish(doc *report.Regal, graphs []rivals.Graph) error {
	if j.lines == nil {
		return nil
	}
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{regalResultFile, func(w io.Writer) error { return report.WriteJSON(w, doc) }},
		{regalTextFile, doc.WriteText},
		{regalRowsFile, doc.WriteCSV},
		{regalGraphsCSV, func(w io.Writer) error { return writeRegalGraphs(w, j.methods, graphs) }},
	} {
		if err := fsx.WriteFile(j.path(file.name), file.write); err != nil {
			return err
		}
	}
	return nil
}

func (j *regalJournal) close() {
	if j.lines != nil {
		j.lines.Close()
	}
}

// writeRegalGraphs writes what each method came to on each graph, a header first.
func writeRegalGraphs(w io.Writer, methods []string, graphs []rivals.Graph) error {
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
