package search

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"placer/internal/fsx"
)

// Point is what a method had come to at some moment of a run.
type Point struct {
	Method      string
	What        What
	Seconds     float64 // since the start of the search
	Evaluations int     // of the method so far
	Value       float64 // the best so far; 0 before the first placement
	Feasible    bool
}

// maxHistory bounds a progress file: four lines a second of twenty methods for a week.
const maxHistory = 1 << 30

// ReadHistory returns the lines of the progress file of the run in dir, in order; none
// where there is no such file. A last line that a kill cut short is left out.
func ReadHistory(dir string) (points []Point, err error) {
	path := filepath.Join(dir, ProgressFile)
	text, err := fsx.ReadFile(path, maxHistory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	whole := string(text[:strings.LastIndexByte(string(text), '\n')+1])
	k := 0
	for row := range strings.Lines(whole) {
		k++
		var l line
		if err := json.Unmarshal([]byte(row), &l); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, k, err)
		}
		p := Point{Method: l.Method, What: l.What, Seconds: l.Seconds, Evaluations: l.Evaluations, Feasible: l.Feasible}
		if l.StepTime != nil {
			p.Value = *l.StepTime
		}
		points = append(points, p)
	}
	return points, nil
}
