package cli

import (
	"fmt"

	"placer/graph/unit"
	"placer/internal/bench"
	"placer/internal/fsx"
	"placer/internal/jsonx"
	"placer/measure/session"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
	"placer/sim/robust"
)

// runFormat names the version of settings as a JSON document.
const runFormat = "placer run 1"

// settings are what a search is asked for: the document of --config, and that of a
// run folder.
type settings struct {
	Format string `json:"format"`
	runSettings
	hostSettings
}

// runSettings are those that a run's plan depends on.
type runSettings struct {
	graphFlags
	machineFlags
	GraphHash   string `json:"graph_hash,omitempty"`
	MachineHash string `json:"machine_hash,omitempty"` // of machine.json beside it
	// MachineAssumed says of a run that nobody has named its machine.
	MachineAssumed bool              `json:"machine_assumed,omitempty"`
	Budget         budget            `json:"budget"`
	Seed           uint64            `json:"seed"`
	Granularity    string            `json:"granularity"`
	Scheduler      problem.Scheduler `json:"scheduler"`
	Objective      plan.Objective    `json:"objective,omitempty"`
	Contention     string            `json:"contention,omitempty"` // empty: as the graph's file says, or fifo
	Robust         string            `json:"robust,omitempty"`     // quantile over machines that deviate; empty: the machine as it is
	Tasks          string            `json:"tasks,omitempty"`
	// Evaluator is what policies learn from; roofline where empty. Measuring says how
	// steps are measured; Measurements is the file of measurements, the run's own where
	// it is empty.
	Evaluator    string            `json:"evaluator,omitempty"`
	MeasureBest  int               `json:"measure_best,omitempty"`
	Measuring    *session.Settings `json:"measuring,omitempty"`
	Measurements string            `json:"measurements,omitempty"`
	Methods      []string          `json:"methods,omitempty"`
	From         []string          `json:"from,omitempty"` // plan files that the search starts from
	FromScratch  bool              `json:"from_scratch,omitempty"`
	// Strategies says whether rows of strategies stand beside the methods; nil leaves it
	// to the budget.
	Strategies *bool `json:"strategies,omitempty"`
	// Walkers is how many searches of the portfolio go side by side and share their
	// bests; 0: 2, and as many as workers where no budget in evaluations bounds the run.
	Walkers int `json:"walkers,omitempty"`
}

// hubSettings name the hub that spreads a search over hosts.
type hubSettings struct {
	Address string `json:"address,omitempty"` // HOST:PORT to listen at, or the nats:// URL of one that runs; empty: none
	Keys    string `json:"keys,omitempty"`    // folder 'hub' of what 'placer worker keys' made
	Await   int    `json:"await,omitempty"`   // workers to wait for before the search begins
}

// hostSettings are those of the process that searches; no run keeps them.
type hostSettings struct {
	Workers      int          `json:"workers,omitempty"`
	Python       string       `json:"python,omitempty"` // program that runs steps of PyTorch
	PolicyDevice string       `json:"policy_device,omitempty"`
	Libraries    libraryFlags `json:"libraries,omitzero"`
	Hub          hubSettings  `json:"hub,omitzero"`
}

// budget is report.Budget with names of its own.
type budget struct {
	Seconds     float64 `json:"seconds"`
	Evaluations int     `json:"evaluations"`
}

// movedFlags are the keys of the settings that take the place of what were flags.
var movedFlags = map[string]string{
	"measure-best": "measure_best", "measurements": "measurements", "measure-mode": "measuring.mode", "measure-repeats": "measuring.repeats",
	"logical": "measuring.logical", "partition": "measuring.partition", "libcuda": "libraries.libcuda", "cublas": "libraries.cublas",
	"hub": "hub.address", "hub-keys": "hub.keys", "await": "hub.await",
}

// defaultSettings are those of a search that names nothing but a graph.
func defaultSettings() settings {
	measuring := session.DefaultSettings()
	return settings{
		Format: runFormat,
		runSettings: runSettings{
			Seed: 1, Granularity: unit.Chain.String(), Scheduler: problem.CriticalPath, Objective: plan.Step,
			Evaluator: byRoofline, MeasureBest: 4, Measuring: &measuring,
		},
		hostSettings: hostSettings{PolicyDevice: onCPU, Python: defaultPython},
	}
}

// readSettings reads the document in the file at path, or stdin, into what to points to.
func (c *console) readSettings(path string, to any) error {
	data, err := c.readInput(path)
	if err != nil {
		return err
	}
	if of := jsonx.Format(data); of != "" {
		if err := checkFormat(path, of); err != nil {
			return err
		}
	}
	if err := jsonx.Unmarshal(data, to); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// readInput reads the file at path, or stdin for "-".
func (c *console) readInput(path string) ([]byte, error) {
	if path == "-" {
		return fsx.Read(c.in, "stdin", maxSettings)
	}
	return fsx.ReadFile(path, maxSettings)
}

// checkFormat reports settings at path that do not say their format, or another.
func checkFormat(path, format string) error {
	switch format {
	case runFormat:
		return nil
	case "":
		return fmt.Errorf("%s: key format is missing, want \"format\": %q", path, runFormat)
	}
	return fmt.Errorf("%s: format is %q, want %q", path, format, runFormat)
}

// maxSettings bounds a document of settings.
const maxSettings = 64 << 20

// complete fills in what is left open and reports the first fault.
func (s *runSettings) complete() error {
	o, err := plan.ParseObjective(string(s.Objective.Normal()))
	if err != nil {
		return usage(err)
	}
	if s.Objective = o; o == plan.Step {
		s.Objective = "" // as run folders have it
	}
	switch {
	case s.Budget.Seconds < 0 || s.Budget.Evaluations < 0:
		return usagef("a budget of %g seconds and %d evaluations: want more than 0", s.Budget.Seconds, s.Budget.Evaluations)
	case s.Walkers < 0 || s.Walkers > 1024:
		return usagef("%d walkers: want 0 to 1024", s.Walkers)
	case s.Budget == budget{}:
		s.Budget.Seconds = search.Default().Budget.Seconds
	}
	if _, err := unit.ParseLevel(s.Granularity); err != nil {
		return usage(err)
	}
	if err := s.completeTasks(); err != nil {
		return err
	}
	return s.completeEvaluator()
}

// completeTasks makes them all, or placement alone where there is nothing else to
// decide or no way to judge it.
func (s *runSettings) completeTasks() error {
	o, err := s.options()
	if err != nil {
		return err
	}
	switch {
	case s.Tasks == "":
		s.Tasks = o.DefaultTasks().String()
		if s.runsOnPython() {
			s.Tasks = (plan.Place | plan.Schedule).String()
		}
	case o.Tasks.Has(plan.Fuse) && s.runsOnPython():
		return usagef("--tasks %s: PyTorch's steps run op by op, so fusion cannot be measured; want place,schedule", s.Tasks)
	case !o.Tasks.Has(plan.Place):
		return usagef("--tasks %s: a search decides on place too", s.Tasks)
	case o.Tasks != plan.Place && o.Objective.Normal() != plan.Step:
		return usagef("--tasks %s: by the %s objective there is place alone to decide on", s.Tasks, o.Objective)
	}
	return nil
}

// runsOnPython reports whether steps are measured by PyTorch, op by op.
func (s *runSettings) runsOnPython() bool {
	return s.Evaluator != "" && s.Evaluator != byRoofline && s.Measuring.Runtime == session.Torch
}

// boundShare is the most of a budget in seconds that proving a bound takes: what a search begins
// with by the largest load, and what it ends with by the step.
const boundShare = 0.1

// options returns what the assembler of the problem is told.
func (s *runSettings) options() (o problem.Options, err error) {
	o = problem.Options{Scheduler: s.Scheduler, Objective: s.Objective, Contention: s.Contention, BoundSeconds: boundShare * s.Budget.Seconds}
	if s.Tasks != "" {
		if o.Tasks, err = plan.ParseTasks(s.Tasks); err != nil {
			return o, usage(err)
		}
	}
	if s.Robust != "" {
		c, err := robust.Parse(s.Robust)
		if err != nil {
			return o, usage(err)
		}
		if o.Objective.Normal() != plan.Step {
			return o, usagef("--robust %s: goes with the step objective", s.Robust)
		}
		if s.Evaluator != "" && s.Evaluator != byRoofline {
			return o, usagef("--robust %s: measured steps are what they are", s.Robust)
		}
		o.Robust = &c
	}
	return o, bench.CheckOptions(&o)
}

// completeEvaluator drops what is about measuring where nothing is measured.
func (s *runSettings) completeEvaluator() error {
	switch s.Evaluator {
	case byRoofline, "":
		s.Evaluator, s.MeasureBest, s.Measuring, s.Measurements = "", 0, nil, ""
		return nil
	case byHardware:
		s.MeasureBest = 0
	case byBoth:
		if s.MeasureBest < 1 {
			return usagef("measure_best %d: want at least 1", s.MeasureBest)
		}
	default:
		return usagef("unknown evaluator %q, want %s, %s or %s", s.Evaluator, byRoofline, byHardware, byBoth)
	}
	switch err := s.Measuring.Validate(); {
	case err != nil:
		return usage(err)
	case s.Measuring.Runtime == session.Torch && (s.Graph == "" || s.Graph == "-" || s.Train != ""):
		return usagef("--runtime torch wants --graph FILE, a graph that placer_torch captured, and its program beside it")
	case s.Objective.Normal() != plan.Step:
		return usagef("--evaluator %s: the %s objective is not measured", s.Evaluator, s.Objective)
	}
	return nil
}

// check reports the first fault.
func (s *hostSettings) check() error {
	how := search.Default()
	how.Workers = s.Workers
	tooMany := how.Validate()
	switch {
	case s.Workers < 1:
		return usagef("--workers %d: want at least 1", s.Workers)
	case tooMany != nil:
		return usagef("--%w", tooMany)
	case s.Hub.Address == "" && s.Hub != hubSettings{}:
		return usagef("the settings of a hub want its address")
	case s.Hub.Await < 0:
		return usagef("hub.await %d: want 0 or more", s.Hub.Await)
	}
	return nil
}
