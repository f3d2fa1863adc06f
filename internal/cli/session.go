package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"placer/graph/unit"
	"placer/hw"
	"placer/internal/report"
	"placer/internal/report/web"
	"placer/measure"
	"placer/measure/python"
	"placer/measure/session"
	"placer/nn"
	"placer/placer/methods"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/placer/strategies"
	"placer/placer/verdict"
	"placer/plan"
	"placer/sim"
	"placer/sim/robust"
)

func (b budget) plan() plan.Budget {
	return plan.Budget{Seconds: b.Seconds, Evaluations: b.Evaluations}
}

// asked is s without what identifies the inputs, which may be others another time.
func (s runSettings) asked() runSettings {
	s.GraphHash, s.MachineHash, s.MachineAssumed = "", "", false
	return s
}

// searchRun is one search about to run.
type searchRun struct {
	config   runSettings
	run      *search.Run
	made     bool // its folder is new
	task     *problem.Problem
	host     search.Host // what measures, beside the clocks
	loaded   loaded
	level    unit.Level
	given    []plan.Decision // of the plan files of --from
	methods  []search.Method
	memory   *search.Memory   // of an earlier run; nil for a new one
	before   float64          // seconds that had passed in it
	done     *report.Search   // the result of an earlier run that had ended
	gpus     *localGPUs       // nil where the search does not measure on GPUs here
	torch    *python.Process  // nil where it does not measure by PyTorch
	cache    *session.Cache   // nil before it is opened
	page     *web.Plan        // the best plan and its step; nil before it is written
	divided  []strategies.Row // ways to divide the batch, of so many samples
	batch    int64
	robustly *robust.Config // what steps are judged by; nil: the machine as it is
	// restricted is the program of --for; nil: none is named.
	restricted *restriction
}

// close closes what the session has open.
func (s *searchRun) close() {
	if s.cache != nil {
		s.cache.Close()
	}
	if s.gpus != nil {
		s.gpus.warm.Close()
	}
	if s.torch != nil {
		s.torch.Close()
	}
	if s.run != nil {
		s.run.Close()
	}
}

// discard removes the run, unless it was there before.
func (s *searchRun) discard() error {
	if s.memory != nil { // of a run that is resumed
		return nil
	}
	return s.run.Discard(s.made)
}

// prepare loads what the settings name and makes or opens the run folder. Nothing
// is written before everything has been read and found possible.
func (c *console) prepare(ctx context.Context, f *searchFlags, device nn.Device) (*searchRun, error) {
	s, from := &searchRun{config: f.runSettings}, c.begin
	if f.resume != "" {
		from = c.resume
	}
	if err := from(ctx, s, f, device); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// begin prepares a new run.
func (c *console) begin(ctx context.Context, s *searchRun, f *searchFlags, device nn.Device) error {
	if !f.printConfig { // which wants no GPU
		if err := c.beforeMeasuring(ctx, s, f); err != nil {
			return err
		}
	}
	l, m, err := c.loadInputs(f.inputFlags())
	if err != nil {
		return err
	}
	switch captured := s.config.measures() && s.config.Measuring.Mode == measure.Captured.String(); {
	case captured:
		m = m.Captured() // as such steps are predicted, here and by workers
	case s.config.measures() && s.config.CUDAGraph:
		return usagef("--cuda-graph: steps are measured in mode %s", s.config.Measuring.Mode)
	}
	assumed := !f.named() && l.Times == nil
	if assumed {
		s.config.GPU = defaultGPU
	} else if s.config.MachineAssumed { // in the run whose settings these are
		l.assumeMachine(m)
	}
	if err := c.readFrom(s, l, m, ""); err != nil {
		return err
	}
	if err := s.assemble(c, l, m, f, device); err != nil {
		return err
	}
	if r := s.config.Robust; r != "" {
		c.note("--robust %s: step times are that quantile over %d machines that deviate by %.1f%%", r, robust.Default().Machines, 100*verdict.ErrorOf(l.Source, m).Share)
	}
	if f.printConfig {
		return nil
	}
	s.config.MachineAssumed = assumed || s.config.MachineAssumed
	name := fmt.Sprintf("%s-%s-%d", fileName(l.Graph.Name()), fileName(m.Name), f.Seed)
	if s.run, s.made, err = newRunFolder(f.out, name); err != nil {
		return err
	}
	return s.writeInputs()
}

// readFrom reads the plans that the search starts from. dir is the folder of a run that is
// resumed.
func (c *console) readFrom(s *searchRun, l loaded, m *hw.Machine, dir string) error {
	for _, path := range s.config.From {
		if dir != "" {
			path = inRun(dir, path, fromFile)
		}
		p, err := c.inForm(path, l.Graph, m)
		if err != nil {
			return err
		}
		if p == nil {
			file, err := c.readPlan(path)
			if err != nil {
				return err
			}
			if p, err = file.Plan(l.Graph, m); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		s.given = append(s.given, p.Decision)
	}
	return nil
}

// assemble makes the task and the methods from what was loaded, and checks that it
// is what the settings are about.
func (s *searchRun) assemble(c *console, l loaded, m *hw.Machine, f *searchFlags, device nn.Device) error {
	k := &s.config
	go l.Graph.Hash() // beside the problem
	how, err := k.options()
	if err != nil {
		return err
	}
	if how.Robust != nil {
		how.Robust.Error = verdict.ErrorOf(l.Source, m).Share
		s.robustly = how.Robust
	}
	if s.level, err = unit.ParseLevel(k.Granularity); err != nil {
		return usage(err)
	}
	contention, err := l.Contention(how.Contention)
	if err != nil {
		return err
	}
	of := methods.Problem{Objective: how.Objective, Tasks: how.Tasks, Uncontended: contention == sim.Uncontended, Unlayered: !l.Layered(), Machine: m, Ops: l.NumOps(), FromScratch: k.FromScratch}
	all := methods.ForSearch(of, methods.Options{Level: s.level, Workers: f.Workers, Walkers: k.Walkers, NetworkDevice: device})
	if len(s.given) > 0 {
		all = append([]search.Method{methods.Given(s.given)}, all...)
		if len(k.Methods) > 0 && !slices.Contains(k.Methods, methods.GivenName) {
			k.Methods = append([]string{methods.GivenName}, k.Methods...)
		}
	}
	unnamed := func(all []search.Method) []search.Method { return methods.ByDefault(of, all) }
	onDevice := f.PolicyDevice != onCPU
	if k.measures() || onDevice || f.Hub.Address != "" { // what is measured, and what device and workers are for, is the policy
		unnamed = methods.Separate
	}
	if s.methods, err = choose(all, k.Methods, unnamed); err != nil {
		return err
	}
	k.Methods = nil
	for _, x := range s.methods {
		k.Methods = append(k.Methods, x.Name)
	}
	s.loaded = l
	if s.task, err = await(c, func() (*problem.Problem, error) { return problem.New(l.Source, m, how) }); err != nil {
		return err
	}
	for _, x := range []struct {
		want *string
		got  string
	}{{&k.GraphHash, l.Graph.Hash()}, {&k.MachineHash, m.Hash()}} {
		if *x.want != "" && *x.want != x.got {
			return fmt.Errorf("%s: graph %s or its machine is no longer what the run was about", cmp.Or(f.resume, f.config), l.Graph.Name())
		}
		*x.want = x.got
	}
	if onDevice {
		if err := usesNetwork(s.task.Tasks, k.Methods); err != nil {
			return err
		}
	}
	return errors.Join(s.measurable(), s.hubbable(&f.Hub), s.restrict(f))
}

// hubbable reports what keeps workers of the hub that f names from evaluating the task.
func (s *searchRun) hubbable(f *hubSettings) error {
	if f.Address == "" {
		return nil
	}
	if err := f.checkAddress(); err != nil {
		return err
	}
	if s.task.Objective.Normal() != plan.Step || s.loaded.Times != nil || s.loaded.Seconds != nil {
		return usagef("hub.address: workers evaluate step times by the roofline model, and know neither other objectives nor the times of a graph's file")
	}
	if s.config.Robust != "" {
		return usagef("hub.address: workers evaluate steps on the machine as it is, and know no quantile of --robust")
	}
	return nil
}

// fromFile is the plan in a run folder that --from read from stdin.
const fromFile = "from.json"

// writeInputs writes what a later --resume needs.
func (s *searchRun) writeInputs() error {
	if s.config.Graph == "-" {
		if s.loaded.Times != nil {
			s.config.Times = search.TimesFile
			if err := s.run.Write(search.TimesFile, s.loaded.Times.Write); err != nil {
				return err
			}
		}
		s.config.graphFlags = graphFlags{Graph: search.GraphFile, Times: s.config.Times}
		if err := s.run.Write(search.GraphFile, s.task.Graph.Write); err != nil {
			return err
		}
	}
	if k := slices.Index(s.config.From, "-"); k >= 0 {
		p := plan.Plan{Graph: s.task.Graph.Hash(), Machine: s.task.Machine.Name, Method: methods.GivenName, Decision: s.given[k]}
		file, err := p.File(s.task.Graph, s.task.Machine)
		if err != nil {
			return err
		}
		if err := s.run.Write(fromFile, file.Write); err != nil {
			return err
		}
		s.config.From = slices.Clone(s.config.From)
		s.config.From[k] = fromFile
	}
	if err := s.run.Write(search.MachineFile, s.task.Machine.Write); err != nil {
		return err
	}
	return s.run.WriteJSON(search.ConfigFile, settings{Format: runFormat, runSettings: s.config})
}

// longestName is how long the name of a graph or a machine is in names of files: a run folder has
// both, and systems take 255 bytes.
const longestName = 100

// fileName returns s with what does not belong in file names replaced, its beginning where it is
// long.
func fileName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' {
			return r
		}
		return '-'
	}, s)
	return s[:min(len(s), longestName)]
}

// resume opens the run in f.resume and loads again what it was about.
func (c *console) resume(ctx context.Context, s *searchRun, f *searchFlags, device nn.Device) (err error) {
	if s.run, s.memory, err = search.OpenRun(f.resume); err != nil {
		return err
	}
	s.before = s.memory.Seconds
	if s.config, err = c.readRunSettings(f.resume); err != nil {
		return err
	}
	var done report.Search
	switch err := s.run.Read(search.ResultFile, &done); {
	case err == nil && done.Format == report.SearchFormat && len(done.Rows) > 0 && !done.Interrupted:
		s.done = &done
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := c.beforeMeasuring(ctx, s, f); err != nil {
		return err
	}
	l, m, err := c.loadRun(f.resume, &s.config)
	if err != nil {
		return err
	}
	if err := c.readFrom(s, l, m, f.resume); err != nil {
		return fromElsewhere(err)
	}
	return s.assemble(c, l, m, f, device)
}

// readRunSettings reads what the run in dir was asked for.
func (c *console) readRunSettings(dir string) (runSettings, error) {
	path := filepath.Join(dir, search.ConfigFile)
	k := defaultSettings()
	k.Format, k.Tasks = "", plan.Place.String()
	if err := c.readSettings(path, &k); err != nil {
		return k.runSettings, err
	}
	if err := checkFormat(path, k.Format); err != nil {
		return k.runSettings, err
	}
	if err := k.complete(); err != nil {
		return k.runSettings, fmt.Errorf("%s: %w", path, err)
	}
	return k.runSettings, nil
}

// loadRun loads the graph and the machine of the run in dir, which was asked for k.
func (c *console) loadRun(dir string, k *runSettings) (l loaded, m *hw.Machine, err error) {
	if m, err = hw.ReadFile(filepath.Join(dir, search.MachineFile)); err != nil {
		return l, nil, err
	}
	from := k.graphFlags
	from.Graph, from.Times = inRun(dir, from.Graph, search.GraphFile), inRun(dir, from.Times, search.TimesFile)
	if l, err = c.loadGraph(&from); err == nil && k.MachineAssumed {
		l.assumeMachine(m)
	}
	return l, m, fromElsewhere(err)
}

// inRun returns path or, where it is name and the run in dir has a file of that name, that one:
// what the run has read from stdin. A file that was given may have the name too.
func inRun(dir, path, name string) string {
	if path == name {
		own := filepath.Join(dir, name)
		if _, err := os.Stat(own); err == nil {
			return own
		}
	}
	return path
}

// fromElsewhere adds to the error of a file that a run names by a relative path and that is not
// there where such paths lead from.
func fromElsewhere(err error) error {
	var at *fs.PathError
	if errors.Is(err, fs.ErrNotExist) && errors.As(err, &at) && !filepath.IsAbs(at.Path) {
		return fmt.Errorf("%w: the run names it from the folder in which it was begun; call placer there", err)
	}
	return err
}
