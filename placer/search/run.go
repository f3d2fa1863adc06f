package search

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"placer/internal/fsx"
	"placer/internal/jsonx"
	"placer/plan"
	"placer/units"
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

// CreateRun makes the folder dir, which must not hold anything yet but what a run leaves
// that is killed before its ConfigFile is there.
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

// OpenRun opens the folder of an earlier run and returns what it remembers: the
// methods, and the seconds that had passed.
func OpenRun(dir string) (r *Run, m *Memory, seconds float64, err error) {
	if _, err := os.Stat(filepath.Join(dir, ConfigFile)); err != nil {
		return nil, nil, 0, fmt.Errorf("%s is no run folder: %w", dir, err)
	}
	r = newRun(dir)
	m = &Memory{Ended: map[string]Remembered{}, Running: map[string]Remembered{}, FirstFeasible: -1}
	var s runState
	switch err := r.Read(stateFile, &s); {
	case errors.Is(err, fs.ErrNotExist): // killed before the first write
	case err != nil:
		return nil, nil, 0, err
	case s.Format != stateFormat || s.Seconds < 0:
		return nil, nil, 0, fmt.Errorf("%s: format %q and %g seconds, want %q and none below 0", r.Path(stateFile), s.Format, s.Seconds, stateFormat)
	default:
		seconds, m.FirstFeasible = s.Seconds, s.FirstFeasible
		r.feasible = s.FirstFeasible
	}
	entries, err := os.ReadDir(filepath.Join(dir, stateFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, 0, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		var s methodState
		if err := r.Read(filepath.Join(stateFolder, e.Name()), &s); err != nil {
			return nil, nil, 0, err
		}
		if s.Format != stateFormat || s.Evaluations < 0 || s.CPUSeconds < 0 {
			return nil, nil, 0, fmt.Errorf("%s: format %q, %d evaluations and %g CPU seconds, want %q and none below 0", r.Path(filepath.Join(stateFolder, e.Name())), s.Format, s.Evaluations, s.CPUSeconds, stateFormat)
		}
		if s.Ended {
			m.Ended[s.Method] = s.remembered("")
			continue
		}
		checkpoint := r.Path(PolicyFile)
		if _, err := os.Stat(checkpoint); err != nil || s.Kind != plan.Policy {
			checkpoint = ""
		}
		m.Running[s.Method] = s.remembered(checkpoint)
	}
	if err := os.MkdirAll(filepath.Join(dir, stateFolder), 0o755); err != nil {
		return nil, nil, 0, err
	}
	if err := r.openProgress(); err != nil {
		return nil, nil, 0, err
	}
	return r, m, seconds, errors.Join(fsx.RemoveTemporary(dir), fsx.RemoveTemporary(filepath.Join(dir, stateFolder)))
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

// runState is the state of a run as a whole.
type runState struct {
	Format        string  `json:"format"`
	Seconds       float64 `json:"seconds"`
	FirstFeasible float64 `json:"first_feasible_s"`
}

// methodState is what is known of one method.
type methodState struct {
	Format      string      `json:"format"`
	Method      string      `json:"method"`
	Kind        plan.Kind   `json:"kind"`
	Ended       bool        `json:"ended"`
	Reason      string      `json:"reason,omitempty"` // of a method that was skipped
	Evaluations int         `json:"evaluations"`
	CPUSeconds  float64     `json:"cpu_seconds"`
	StepTime    float64     `json:"step_time_s"`
	Overflow    units.Bytes `json:"overflow"`
	Device      []byte      `json:"device"` // base64, a byte per op; null without a placement
	Priority    []int32     `json:"priority,omitempty"`
	Fusion      []byte      `json:"fusion,omitempty"` // base64, a byte per op
	Notes       []string    `json:"notes,omitempty"`
}

func (s *methodState) remembered(checkpoint string) Remembered {
	r := Remembered{Reason: s.Reason, CPUSeconds: s.CPUSeconds, Checkpoint: checkpoint}
	if s.Device != nil {
		r.Outcome = &plan.Outcome{Decision: plan.Decision{Device: s.Device, Priority: s.Priority, Fusion: s.Fusion}, Score: plan.Score{Value: s.StepTime, Overflow: s.Overflow}, Evaluations: s.Evaluations, Notes: s.Notes}
	}
	return r
}

// line is one line of the progress file.
type line struct {
	Seconds     float64  `json:"seconds"`
	Method      string   `json:"method"`
	What        What     `json:"what"`
	Evaluations int      `json:"evaluations"`
	StepTime    *float64 `json:"step_time_s"` // null before the first placement
	Feasible    bool     `json:"feasible"`
	Reason      string   `json:"reason,omitempty"`
}

// Observe is the Observer of a search. It writes progress lines, states and a
// learner's checkpoints but for the last (SaveLearner).
func (r *Run) Observe(e Event) error {
	if e.Device != nil && e.Score.Feasible() && r.feasible < 0 {
		r.feasible = e.Seconds
	}
	if err := r.tell(e); err != nil {
		return err
	}
	switch e.What {
	case Progress:
		if e.Device != nil {
			r.pending[e.Method] = &methodState{Method: e.Method, Kind: e.Kind, StepTime: e.Score.Value, Overflow: e.Score.Overflow, Device: slices.Clone(e.Device),
				Priority: slices.Clone(e.Priority), Fusion: slices.Clone(e.Fusion)}
		}
		if s := r.pending[e.Method]; s != nil && e.Seconds-r.written[e.Method] >= statePeriod {
			s.Evaluations, s.CPUSeconds = e.Evaluations, e.CPUSeconds
			if err := r.remember(s, e.Seconds); err != nil {
				return err
			}
		}
		if s, ok := e.Placer.(Saver); ok && e.Kind == plan.Policy && e.Seconds-r.saved[e.Method] >= savePeriod {
			r.saved[e.Method] = e.Seconds
			r.save(s)
		}
		return nil
	case Ended:
		if s, ok := e.Placer.(Saver); ok && e.Kind == plan.Policy {
			r.learner = s
		}
		return r.remember(&methodState{Method: e.Method, Kind: e.Kind, Ended: !e.Cut, Evaluations: e.Evaluations, CPUSeconds: e.CPUSeconds,
			StepTime: e.Score.Value, Overflow: e.Score.Overflow, Device: e.Device, Priority: e.Outcome.Priority, Fusion: e.Outcome.Fusion, Notes: e.Outcome.Notes}, e.Seconds)
	case Skipped:
		if e.Cut {
			return nil
		}
		return r.remember(&methodState{Method: e.Method, Kind: e.Kind, Ended: true, Reason: e.Reason, CPUSeconds: e.CPUSeconds}, e.Seconds)
	}
	r.written[e.Method], r.saved[e.Method] = e.Seconds, e.Seconds
	return nil
}

// SaveLearner writes the last checkpoint of the learner that has ended, if there is
// one. It comes behind the results, which it must leave their room on the disk.
func (r *Run) SaveLearner() {
	if r.learner != nil {
		r.save(r.learner)
		r.learner = nil
	}
}

func (r *Run) save(s Saver) {
	if err := s.Save(r.Path(PolicyFile)); err != nil && r.Warn != nil {
		r.Warn(fmt.Errorf("no checkpoint of the policy: %w", err))
	}
}

func (r *Run) remember(s *methodState, now float64) error {
	s.Format = stateFormat
	r.written[s.Method] = now
	if err := r.WriteJSON(filepath.Join(stateFolder, s.Method+".json"), s); err != nil {
		return err
	}
	return r.WriteJSON(stateFile, runState{stateFormat, now, r.feasible})
}

func (r *Run) tell(e Event) error {
	if e.What == Progress && e.Seconds-r.told[e.Method] < progressPeriod {
		return nil
	}
	r.told[e.Method] = e.Seconds
	l := line{Seconds: e.Seconds, Method: e.Method, What: e.What, Evaluations: e.Evaluations, Reason: e.Reason}
	if e.Score.Value > 0 {
		l.StepTime, l.Feasible = &e.Score.Value, e.Score.Feasible()
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = r.progress.Write(append(text, '\n'))
	return err
}
