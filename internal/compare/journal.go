package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"placer/internal/fsx"
	"placer/internal/jsonx"
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
	folder io.Closer // claimed
	trials *fsx.Lines
	inputs *inputs
	done   map[Cell]bool
	known  []Trial
}

// Create makes the folder dir for m; dir must not hold anything yet.
func Create(dir string, m *Matrix) (*Journal, error) {
	folder, err := fsx.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		err = fmt.Errorf("%s is not empty: name another folder, or resume the comparison in it", dir)
	case err == nil:
		err = fsx.WriteFile(filepath.Join(dir, MatrixFile), func(w io.Writer) error { return jsonx.Write(w, m) })
	}
	if err != nil {
		folder.Close()
		return nil, err
	}
	return open(dir, folder)
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
	if err := jsonx.Decode(data, m); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", filepath.Join(dir, MatrixFile), err)
	}
	if err := m.Validate(); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", filepath.Join(dir, MatrixFile), err)
	}
	folder, err := fsx.OpenFolder(dir)
	if err != nil {
		return nil, nil, err
	}
	j, err := open(dir, folder)
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

// open reads the trials so far. It closes the claimed folder where it fails.
func open(dir string, folder io.Closer) (_ *Journal, err error) {
	j := &Journal{dir: dir, folder: folder, done: map[Cell]bool{}}
	j.trials, err = fsx.OpenLines(j.path(TrialsFile), func(line []byte) error {
		var t Trial
		if err := jsonx.Decode(line, &t); err != nil {
			return err
		}
		if j.done[t.Cell] {
			return fmt.Errorf("a second trial of %s on %s with seed %d", t.Method, t.Case, t.Seed)
		}
		j.done[t.Cell] = true
		j.known = append(j.known, t)
		return nil
	})
	if err != nil {
		folder.Close()
		return nil, err
	}
	if j.inputs, err = openInputs(j.path(InputsFile)); err != nil {
		return nil, errors.Join(err, j.trials.Close(), folder.Close())
	}
	return j, nil
}

// SameInputs keeps what a case stands for when it is told first, and from then on reports
// a case that stands for something else. It may be called at once from several goroutines.
func (j *Journal) SameInputs(in Inputs) error {
	was, err := j.inputs.hold(in)
	if err != nil {
		return err
	}
	if other := in.differs(was); other != "" {
		return fmt.Errorf("%s than when the comparison in %s began: restore what it was, or begin another comparison", other, j.dir)
	}
	return nil
}

// Grow makes the comparison in the folder m, which is to have all cells of the
// trials so far.
func (j *Journal) Grow(m *Matrix) error {
	return j.Write(MatrixFile, func(w io.Writer) error { return jsonx.Write(w, m) })
}

// Dir returns the path of the folder.
func (j *Journal) Dir() string { return j.dir }

// hasTrial reports whether the journal has the trial of cell.
func (j *Journal) hasTrial(cell Cell) bool { return j.done[cell] }

// Trials returns the trials so far, in the order they ended.
func (j *Journal) Trials() []Trial { return j.known }

// add appends a trial.
func (j *Journal) add(t Trial) error {
	line, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if err := j.trials.Add(line); err != nil {
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
func (j *Journal) Close() error {
	return errors.Join(j.trials.Close(), j.inputs.close(), j.folder.Close())
}

func (j *Journal) path(name string) string { return filepath.Join(j.dir, name) }
