package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"io"
	"placer/internal/fsx"
)

// Names of the files of a comparison's folder.
const (
	MatrixFile = "matrix.json"
	TrialsFile = "trials.jsonl" // one trial a line, in the order they ended
	ResultFile = "compare.json"
	CSVFile    = "compare.csv"
	TextFile   = "compare.md"
)

// Journal is the folder of a comparison. A trial is on disk when Add returns, so
// a killed comparison loses only what was running.
type Journal struct {
	dir    string
	trials *os.File
	done   map[Cell]bool
	known  []Trial
}

// Create makes the folder dir for m; dir must not hold anything yet.
func Create(dir string, m *Matrix) (*Journal, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	switch entries, err := os.ReadDir(dir); {
	case err != nil:
		return nil, err
	case len(entries) > 0:
		return nil, fmt.Errorf("%s is not empty: name another folder, or resume the comparison in it", dir)
	}
	if err := fsx.WriteFile(filepath.Join(dir, MatrixFile), func(w io.Writer) error { return writeJSON(w, m) }); err != nil {
		return nil, err
	}
	return open(dir)
}

// Open opens the folder of an earlier comparison.
func Open(dir string) (*Journal, *Matrix, error) {
	data, err := os.ReadFile(filepath.Join(dir, MatrixFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s is no folder of a comparison: %w", dir, err)
	}
	if err != nil {
		return nil, nil, err
	}
	m := &Matrix{}
	if err := strict(data, m); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", filepath.Join(dir, MatrixFile), err)
	}
	if err := m.Validate(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", filepath.Join(dir, MatrixFile), err)
	}
	j, err := open(dir)
	if err != nil {
		return nil, nil, err
	}
	cells := map[Cell]bool{}
	for _, c := range m.Cells() {
		cells[c] = true
	}
	for _, t := range j.known {
		if !cells[t.Cell] {
			j.Close()
			return nil, nil, fmt.Errorf("%s: trial of %s on %s with seed %d is not of this comparison", j.path(TrialsFile), t.Method, t.Case, t.Seed)
		}
	}
	return j, m, nil
}

func open(dir string) (*Journal, error) {
	j := &Journal{dir: dir, done: map[Cell]bool{}}
	f, err := os.OpenFile(j.path(TrialsFile), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	j.trials = f
	if err := j.read(); err != nil {
		f.Close()
		return nil, err
	}
	return j, nil
}

// read reads the trials there are and cuts off a line that a kill left
// unfinished.
func (j *Journal) read() error {
	data, err := os.ReadFile(j.path(TrialsFile))
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	for n, line := range strings.Split(strings.TrimSuffix(string(data[:whole]), "\n"), "\n") {
		if line == "" {
			continue
		}
		var t Trial
		if err := strict([]byte(line), &t); err != nil {
			return fmt.Errorf("%s: line %d: %w", j.path(TrialsFile), n+1, err)
		}
		if j.done[t.Cell] {
			return fmt.Errorf("%s: line %d: a second trial of %s on %s with seed %d", j.path(TrialsFile), n+1, t.Method, t.Case, t.Seed)
		}
		j.done[t.Cell] = true
		j.known = append(j.known, t)
	}
	if err := j.trials.Truncate(int64(whole)); err != nil {
		return err
	}
	_, err = j.trials.Seek(int64(whole), io.SeekStart)
	return err
}

// Dir returns the path of the folder.
func (j *Journal) Dir() string { return j.dir }

// Done reports whether the journal has the trial of cell.
func (j *Journal) Done(cell Cell) bool { return j.done[cell] }

// Trials returns the trials so far, in the order they ended.
func (j *Journal) Trials() []Trial { return j.known }

// Add appends a trial.
func (j *Journal) Add(t Trial) error {
	line, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if _, err := j.trials.Write(append(line, '\n')); err != nil {
		return err
	}
	if err := j.trials.Sync(); err != nil {
		return err
	}
	j.done[t.Cell] = true
	j.known = append(j.known, t)
	return nil
}

// Write writes a file of the folder, whole or not at all.
func (j *Journal) Write(name string, write func(io.Writer) error) error {
	return fsx.WriteFile(j.path(name), write)
}

// Close closes the journal.
func (j *Journal) Close() error { return j.trials.Close() }

func (j *Journal) path(name string) string { return filepath.Join(j.dir, name) }

// strict reads one JSON document that has no unknown keys and nothing behind it.
func strict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("data after the end of the document")
	}
	return nil
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
