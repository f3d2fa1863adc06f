package cpsat

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"placer/baselines/budget"
)

// ErrUnavailable says that there is no CP-SAT on this computer.
var ErrUnavailable error = budget.Unavailable("libortools not found; install OR-Tools (Python's package ortools holds it) and name its file or folder in PLACER_ORTOOLS")

// Variable names the environment variable that holds the path of the library.
const Variable = "PLACER_ORTOOLS"

// Open opens the library at path, a file or a folder that holds it; an empty path
// stands for the value of Variable and, where that is not set, for the usual
// places. The error is ErrUnavailable where there is none in these, and says what
// was wrong with a path that was given. The library stays open until the program
// ends.
func Open(path string) (*Library, error) {
	if path = cmp.Or(path, os.Getenv(Variable)); path != "" {
		file := path
		if i, err := os.Stat(path); err == nil && i.IsDir() {
			if file = newest(path); file == "" {
				return nil, fmt.Errorf("cpsat: %s holds no libortools.so", path)
			}
		}
		l, err := open(file)
		if err != nil {
			return nil, fmt.Errorf("cpsat: %s: %w", file, err)
		}
		return l, nil
	}
	for _, name := range places() {
		if l, err := open(name); err == nil {
			return l, nil
		}
	}
	return nil, ErrUnavailable
}

// newest returns the libortools of a folder, or of its folder .libs or lib, that
// comes last by name, or nothing.
func newest(dir string) string {
	for _, sub := range []string{"", ".libs", "lib"} {
		if found, _ := filepath.Glob(filepath.Join(dir, sub, "libortools.so*")); len(found) > 0 {
			return slices.Max(found)
		}
		if file := filepath.Join(dir, sub, "libortools.dylib"); exists(file) {
			return file
		}
	}
	return ""
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// places lists names that the loader may know, then files in the folders of
// Python's packages.
func places() []string {
	names := []string{"libortools.so.9", "libortools.so", "libortools.dylib"}
	roots := []string{"/usr/lib", "/usr/local/lib", "/opt/or-tools/lib", "/opt/homebrew/lib"}
	if home, err := os.UserHomeDir(); err == nil {
		roots = append(roots, filepath.Join(home, ".local", "lib"))
	}
	if env := os.Getenv("VIRTUAL_ENV"); env != "" {
		roots = append(roots, filepath.Join(env, "lib"))
	}
	for _, r := range roots {
		for _, p := range []string{"ortools", "python3*/site-packages/ortools", "python3*/dist-packages/ortools", "python3/dist-packages/ortools"} {
			dirs, _ := filepath.Glob(filepath.Join(r, p))
			for _, d := range dirs {
				if file := newest(d); file != "" {
					names = append(names, file)
				}
			}
		}
		if file := newest(r); file != "" {
			names = append(names, file)
		}
	}
	return names
}

// Solve runs the solver on m. It stops soon after ctx ends, with what it has by
// then; a run that finds nothing is no error but has status Unknown. The solver
// checks the model: one that breaks its rules is an error.
func (l *Library) Solve(ctx context.Context, m *Model, p Params) (*Response, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	model, err := m.Marshal()
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return &Response{}, nil
	}
	answer, err := l.solve(ctx, model, p.marshal())
	if err != nil {
		return nil, err
	}
	r, err := unmarshal(answer)
	if err != nil {
		return nil, err
	}
	if r.Status == Invalid {
		return nil, fmt.Errorf("cpsat: the solver finds the model invalid (%d variables, %d constraints)", m.NumVars(), m.NumConstraints())
	}
	if len(r.Values) != 0 && len(r.Values) != m.NumVars() {
		return nil, fmt.Errorf("cpsat: %d values for %d variables", len(r.Values), m.NumVars())
	}
	return r, nil
}
