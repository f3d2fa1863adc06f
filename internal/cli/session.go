package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
	"placer/measure"
	"placer/measured"
	"placer/placer"
	"placer/plan"
	"placer/report"
	"placer/sim"
	"placer/times"
)

// runFormat names the version of runConfig as a JSON document.
const runFormat = "placer run 1"

// graphCopy is the file of a run folder that holds a graph read from stdin.
const graphCopy = "graph.json"

// timesCopy is the file of a run folder that holds the times that came with it.
const timesCopy = "times.json"

// runConfig is what a run was asked for, with every default filled in.
type runConfig struct {
	Format      string           `json:"format"`
	Workload    string           `json:"workload,omitempty"`
	Graph       string           `json:"graph,omitempty"` // path
	Train       string           `json:"train,omitempty"`
	Dims        map[string]int64 `json:"dims,omitempty"`
	GraphHash   string           `json:"graph_hash"`
	MachineHash string           `json:"machine_hash"` // of machine.json beside it
	Budget      searchBudget     `json:"budget"`
	Seed        uint64           `json:"seed"`
	Granularity string           `json:"granularity"`
	Scheduler   string           `json:"scheduler"`
	Objective   plan.Objective   `json:"objective,omitempty"`
	Contention  string           `json:"contention,omitempty"`
	Tasks       string           `json:"tasks,omitempty"` // place where empty
	Times       string           `json:"times,omitempty"` // path
	// Evaluator is what policies learn from; roofline where empty. Measuring says how
	// steps are measured; Measurements is the path of the memo, the run's own where it
	// is empty.
	Evaluator    string             `json:"evaluator,omitempty"`
	MeasureBest  int                `json:"measure_best,omitempty"`
	Measuring    *measured.Settings `json:"measuring,omitempty"`
	Measurements string             `json:"measurements,omitempty"`
	Methods      []string           `json:"methods"`
}

// searchBudget is report.Budget with a way back.
type searchBudget report.Budget

func (b searchBudget) plan() plan.Budget {
	return plan.Budget{Seconds: b.Seconds, Evaluations: b.Evaluations}
}

// session is one search about to run.
type session struct {
	config  runConfig
	run     *placer.Run
	task    *placer.Task
	sim     *sim.Simulator
	loaded  loaded
	level   unit.Level
	methods []placer.Method
	memory  *placer.Memory // of an earlier run; nil for a new one
	before  float64        // seconds that had passed in it
	// fromFile are the times that came with a graph; nil: none.
	fromFile *times.Table
	done     *report.Search // the result of an earlier run that had ended
	gpus     *localGPUs     // nil where the search does not measure here
	memo     *measured.Memo // nil before it is opened
}

// close closes what the session has open.
func (s *session) close() {
	if s.memo != nil {
		s.memo.Close()
	}
	if s.gpus != nil {
		s.gpus.warm.Close()
	}
	if s.run != nil {
		s.run.Close()
	}
}

func (s *session) searchConfig(workers int) placer.SearchConfig {
	c := placer.DefaultSearch()
	c.Budget, c.Seed, c.Workers = s.config.Budget.plan(), s.config.Seed, workers
	return c
}

// prepare loads what the flags name and makes or opens the run folder. Nothing
// is written before everything has been read and found possible.
func (c *console) prepare(cmd *cobra.Command, f *searchFlags) (s *session, err error) {
	if f.resume != "" {
		return c.resume(f)
	}
	level, err := unit.ParseLevel(f.granularity)
	if err != nil {
		return nil, usageError{err}
	}
	s = &session{level: level}
	defer func() {
		if err != nil {
			s.close()
			s = nil
		}
	}()
	f.evaluator.config(&s.config)
	if err := c.beforeMeasuring(s, f); err != nil {
		return s, err
	}
	l, m, err := c.load(&f.graph, &f.machine)
	if err != nil {
		return s, err
	}
	if s.config.measures() && s.config.Measuring.Mode == measure.Captured.String() {
		m = m.Captured() // as such steps are predicted, here and by workers
	}
	contention, err := l.contention(f.judging.contention)
	if err != nil {
		return s, err
	}
	all := methods(level, f.workers, f.judging.objective, f.judging.tasks, contention == sim.Uncontended)
	if f.fromScratch {
		all = slices.DeleteFunc(all, func(m placer.Method) bool { return m.Name == zeroShot || m.Name == fineTuned })
	}
	if s.methods, err = choose(all, f.methods); err != nil {
		return s, err
	}
	g := l.Graph
	s.fromFile, s.config = l.times, runConfig{
		Evaluator: s.config.Evaluator, MeasureBest: s.config.MeasureBest, Measuring: s.config.Measuring, Measurements: s.config.Measurements,
		Format: runFormat, Workload: f.graph.workload, Graph: f.graph.file, Train: f.graph.train, Dims: f.graph.dims, GraphHash: g.Hash(), MachineHash: m.Hash(),
		Budget: searchBudget{f.budgetOf(cmd).Seconds, f.budgetOf(cmd).Evaluations}, Seed: f.seed, Granularity: f.granularity, Scheduler: f.judging.scheduler,
		Contention: f.judging.contention, Times: f.graph.times,
	}
	if t := f.judging.tasks; t != plan.Place {
		s.config.Tasks = t.String()
	}
	if o := f.judging.objective.Normal(); o != plan.Step {
		s.config.Objective = o
	}
	for _, x := range s.methods {
		s.config.Methods = append(s.config.Methods, x.Name)
	}
	s.loaded = l
	if s.task, s.sim, err = task(l, m, f.judging); err != nil {
		return s, err
	}
	if err := s.measurable(); err != nil {
		return s, err
	}
	name := fmt.Sprintf("%s-%s-%d", fileName(g.Name()), fileName(m.Name), f.seed)
	if s.run, err = newRunFolder(f.out, name); err != nil {
		return s, err
	}
	return s, s.writeInputs(g, m)
}

// writeInputs writes what a later --resume needs.
func (s *session) writeInputs(g *graph.Graph, m *hw.Machine) error {
	if s.config.Graph == "-" {
		if s.fromFile != nil {
			s.config.Times = timesCopy
			if err := s.run.Write(timesCopy, func(w io.Writer) error { return s.fromFile.Write(w) }); err != nil {
				return err
			}
		}
		s.config.Graph, s.config.Train, s.config.Dims = graphCopy, "", nil
		if err := s.run.Write(graphCopy, g.Write); err != nil {
			return err
		}
	}
	if err := s.run.Write(placer.MachineFile, m.Write); err != nil {
		return err
	}
	return s.run.WriteJSON(placer.ConfigFile, s.config)
}

// fileName returns s with what does not belong in file names replaced.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' {
			return r
		}
		return '-'
	}, s)
}

// resume opens the run in f.resume and loads again what it was about.
func (c *console) resume(f *searchFlags) (s *session, err error) {
	s = &session{}
	defer func() {
		if err != nil {
			s.close()
			s = nil
		}
	}()
	if s.run, s.memory, s.before, err = placer.OpenRun(f.resume); err != nil {
		return s, err
	}
	if err := s.run.Read(placer.ConfigFile, &s.config); err != nil {
		return s, err
	}
	if s.config.Format != runFormat {
		return s, fmt.Errorf("%s: format is %q, want %q", s.run.Path(placer.ConfigFile), s.config.Format, runFormat)
	}
	var done report.Search
	switch err := s.run.Read(placer.ResultFile, &done); {
	case err == nil && !done.Interrupted:
		s.done = &done
		return s, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return s, err
	}
	if err := c.beforeMeasuring(s, f); err != nil {
		return s, err
	}
	if s.level, err = unit.ParseLevel(s.config.Granularity); err != nil {
		return s, fmt.Errorf("%s: %w", s.run.Path(placer.ConfigFile), err)
	}
	tasks := plan.Place
	if s.config.Tasks != "" {
		if tasks, err = plan.ParseTasks(s.config.Tasks); err != nil {
			return s, fmt.Errorf("%s: %w", s.run.Path(placer.ConfigFile), err)
		}
	}
	if s.methods, err = choose(methods(s.level, f.workers, s.config.Objective, tasks, slices.Contains(s.config.Methods, freeTransfers)), s.config.Methods); err != nil {
		return s, err
	}
	m, err := hw.ReadFile(s.run.Path(placer.MachineFile))
	if err != nil {
		return s, err
	}
	from := graphFlags{workload: s.config.Workload, file: s.config.Graph, train: s.config.Train, dims: s.config.Dims, times: s.config.Times}
	if from.file == graphCopy {
		from.file = s.run.Path(graphCopy)
	}
	if from.times == timesCopy {
		from.times = s.run.Path(timesCopy)
	}
	l, err := c.loadGraph(&from)
	if err != nil {
		return s, err
	}
	g := l.Graph
	if g.Hash() != s.config.GraphHash || m.Hash() != s.config.MachineHash {
		return s, fmt.Errorf("%s: graph %s or its machine is no longer what the run was about", f.resume, g.Name())
	}
	s.loaded = l
	s.task, s.sim, err = task(l, m, judging{scheduler: s.config.Scheduler, objective: s.config.Objective, contention: s.config.Contention, tasks: tasks})
	if err != nil {
		return s, err
	}
	return s, s.measurable()
}
