package bench

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"placer/internal/compare"
	"placer/internal/jsonx"
	"placer/internal/report"
	"placer/plan"
)

// Trials runs the cells of a matrix.
type Trials interface {
	Trial(ctx context.Context, c compare.Cell) (compare.Trial, error) // a compare.Do
	Ended(name string)                                                // is told of each case whose trial has ended, before this run or in it
}

// Tables is what trials came to, in the forms of a comparison's folder.
type Tables interface {
	WriteText(io.Writer) error
	WriteMarkdown(io.Writer) error
	WriteCSV(io.Writer) error
}

// Comparison is a comparison and nothing beside it.
type Comparison struct{ *compare.Comparison }

// NewComparison is for Run.
func NewComparison(c *compare.Comparison) Tables { return Comparison{c} }

// WriteText writes the tables for people.
func (c Comparison) WriteText(w io.Writer) error { return report.WriteComparison(w, c.Comparison) }

// WriteMarkdown writes the tables as Markdown.
func (c Comparison) WriteMarkdown(w io.Writer) error {
	return report.WriteComparisonMarkdown(w, c.Comparison)
}

// WriteCSV writes the rows.
func (c Comparison) WriteCSV(w io.Writer) error { return report.WriteComparisonCSV(w, c.Comparison) }

// Run runs the cells of m that j does not have, workers at once, writes what all
// trials of the matrix whole came to into j's folder, and returns it. When ctx ends
// the results so far come with the error of ctx.
func Run(ctx context.Context, m, whole *compare.Matrix, j *compare.Journal, workers int, trials Trials, tables func(*compare.Comparison) Tables, host Host) (Tables, error) {
	if workers < 1 {
		return nil, ConfigErrorf("--workers %d: want at least 1", workers)
	}
	cells := map[compare.Cell]bool{}
	for _, c := range m.Cells() {
		cells[c] = true
	}
	for _, t := range j.Trials() { // of m, as the folder may have others
		if cells[t.Cell] {
			trials.Ended(t.Case)
		}
	}
	stopped := compare.Run(ctx, m, j, compare.Host{Workers: workers, Trial: trials.Trial, Ended: func(t *compare.Trial, done, all int) {
		trials.Ended(t.Case)
		host.Log("%d of %d  %s, %s, seed %d: %s", done, all, t.Case, t.Method, t.Seed, outcome(t, m.Objective))
	}})
	if stopped != nil && !errors.Is(stopped, context.Canceled) {
		return nil, stopped
	}
	result := compare.Summarise(*whole, j.Trials())
	doc := tables(result)
	for name, write := range map[string]func(io.Writer) error{
		compare.ResultFile: func(w io.Writer) error { return jsonx.Write(w, result) },
		compare.CSVFile:    doc.WriteCSV,
		compare.TextFile:   doc.WriteMarkdown,
	} {
		if err := j.Write(name, write); err != nil {
			return nil, err
		}
	}
	return doc, stopped
}

// outcome says in a few words what a trial came to.
func outcome(t *compare.Trial, o plan.Objective) string {
	switch {
	case t.Skipped != "":
		return "unavailable: " + t.Skipped
	case !t.Feasible():
		return "does not fit"
	}
	return report.Value(o, t.StepTime)
}

// OpenJournal opens the folder of an earlier run, or makes one, for the cells of m
// beside those it has, and returns the matrix of both.
func OpenJournal(dir string, m *compare.Matrix) (*compare.Journal, *compare.Matrix, error) {
	if _, err := os.Stat(filepath.Join(dir, compare.MatrixFile)); errors.Is(err, fs.ErrNotExist) {
		j, err := compare.Create(dir, m)
		return j, m, err
	}
	j, old, err := compare.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	whole, err := old.With(m)
	if err != nil {
		j.Close()
		return nil, nil, ConfigErrorf("%s holds a run with other flags than --workload, --gpu and --seeds: name another folder", dir)
	}
	if err := j.Grow(whole); err != nil {
		j.Close()
		return nil, nil, err
	}
	return j, whole, nil
}
