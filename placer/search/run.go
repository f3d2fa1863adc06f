package search

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"placer/internal/fsx"
	"placer/internal/jsonx"
)

// Names of the files of a run folder.
const (
	ConfigFile     = "config.json"    // what was asked for, resolved
	MachineFile    = "machine.json"   // the machine, whole
	ProgressFile   = "progress.jsonl" // one line per event
	PlanFile       = "plan.json"
	ResultFile     = "result.json"
	ManifestFile   = "manifest.json"
	PolicyFile     = "policy.safetensors"
	GraphFile      = "graph.json" // of a graph read from stdin
	TimesFile      = "times.json" // the times that came with it
	PerfettoFile   = "trace.perfetto-trace"
	ChromeFile     = "trace.json"
	stateFile      = "state.json"
	stateFolder    = "state" // one file per method
	stateFormat    = "placer state 1"
	statePeriod    = 1.0  // seconds between writes of what a running method has
	progressPeriod = 0.25 // seconds between lines of one method
	savePeriod     = 20.0 // seconds between checkpoints of a learner
)

// Run is the folder of one search. It observes the search, so that a killed
// search can be taken up again: every file is whole at any instant, except for
// the last line of the progress file.
type Run struct {
	dir      string
	progress *os.File
	written  map[string]float64 // by method: when its state was last written
	told     map[string]float64 // by method: when its last line was written
	saved    map[string]float64 // by method: when its checkpoint was last written
	pending  map[string]*methodState
	feasible float64
	learner  Saver // that has ended and is still to be saved; nil: none

	// Warn, if not nil, is told of checkpoints that could not be written, which loses
	// no result.
	Warn func(error)
}

func newRun(dir string) *Run {
	return &Run{dir: dir, written: map[string]float64{}, told: map[string]float64{}, saved: map[string]float64{}, pending: map[string]*methodState{}, feasible: -1}
}

// CreateRun makes a run in the folder dir, which is made where it is not there and must not hold
// anything but what a run leaves that is killed before its ConfigFile is there.
func CreateRun(dir string) (*Run, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if !notBegun(entries) {
		return nil, fmt.Errorf("%s is not empty: name another folder, or resume the run in it", dir)
	}
	if err := os.MkdirAll(filepath.Join(dir, stateFolder), 0o755); err != nil {
		return nil, err
	}
	r := newRun(dir)
	if err := r.openProgress(); err != nil {
		return nil, err
	}
	if err := fsx.RemoveTemporary(dir); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// notBegun reports whether entries are all of a folder that holds no run: nothing, or
// an empty ProgressFile and what may stand beside it before the ConfigFile is written.
func notBegun(entries []fs.DirEntry) bool {
	empty := false
	for _, e := range entries {
		if info, err := e.Info(); e.Name() == ProgressFile && err == nil && info.Size() == 0 {
			empty = true
		}
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == stateFolder, empty && name == ProgressFile, empty && fsx.Temporary(name):
		case empty && (name == GraphFile || name == TimesFile || name == MachineFile):
		default:
			return false
		}
	}
	return true
}

// OpenRun opens the folder of an earlier run and returns what it remembers.
func OpenRun(dir string) (*Run, *Memory, error) {
	if _, err := os.Stat(filepath.Join(dir, ConfigFile)); err != nil {
		return nil, nil, fmt.Errorf("%s is no run folder: %w", dir, err)
	}
	r := newRun(dir)
	m, err := r.memory()
	if err != nil {
		return nil, nil, err
	}
	r.feasible = m.FirstFeasible
	if err := os.MkdirAll(filepath.Join(dir, stateFolder), 0o755); err != nil {
		return nil, nil, err
	}
	if err := r.openProgress(); err != nil {
		return nil, nil, err
	}
	return r, m, errors.Join(fsx.RemoveTemporary(dir), fsx.RemoveTemporary(filepath.Join(dir, stateFolder)))
}

// openProgress opens the progress file behind its last whole line, and by that claims
// the run: two processes in one folder would overwrite each other's results.
func (r *Run) openProgress() error {
	f, err := os.OpenFile(r.Path(ProgressFile), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if err := fsx.Claim(f); err != nil {
		f.Close()
		return err
	}
	text, err := io.ReadAll(f)
	if err == nil {
		whole := int64(strings.LastIndexByte(string(text), '\n') + 1)
		if err = f.Truncate(whole); err == nil {
			_, err = f.Seek(whole, io.SeekStart)
		}
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	r.progress = f
	return nil
}

// Close closes the progress file.
func (r *Run) Close() error { return r.progress.Close() }

// Discard removes the files of a run that CreateRun made and in which nothing was searched, and
// the folder where it was made for the run.
func (r *Run) Discard(made bool) error {
	r.Close() // before it is removed: some systems want it so
	entries, err := os.ReadDir(r.dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(r.Path(e.Name())))
	}
	if made {
		err = errors.Join(err, os.Remove(r.dir))
	}
	return err
}

// Dir returns the folder.
func (r *Run) Dir() string { return r.dir }

// Path returns the path of a file of the run.
func (r *Run) Path(name string) string { return filepath.Join(r.dir, name) }

// Write makes the file name hold what write writes, whole or not at all.
func (r *Run) Write(name string, write func(io.Writer) error) error {
	return fsx.WriteFile(r.Path(name), write)
}

// WriteJSON makes the file name hold v.
func (r *Run) WriteJSON(name string, v any) error {
	return r.Write(name, func(w io.Writer) error { return jsonx.Write(w, v) })
}

// Read reads the file name into v; unknown keys and trailing data are errors.
func (r *Run) Read(name string, v any) error { return ReadDocument(r.Path(name), v) }

// ReadDocument reads the file of a run at path into v; unknown keys and trailing data
// are errors.
func ReadDocument(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := jsonx.Decode(data, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
