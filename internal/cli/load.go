package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"placer/graph"
	"placer/graph/formats"
	"placer/graph/formats/onnx"
	"placer/graph/formats/times"
	"placer/graph/train"
	"placer/hw"
	"placer/internal/bench"
	"placer/placer/fit"
	"placer/placer/problem"
	"placer/plan"
	"placer/units"
	"placer/workloads"
)

// loaded is a graph with what its file says besides.
type loaded struct {
	problem.Source
	file formats.File // nothing for a workload
	// assumptions are what the inputs left open, with what was taken; the one that no
	// machine is named is unnamed too.
	assumptions []string
	unnamed     string
}

// assume notes something that the inputs leave open.
func (l *loaded) assume(format string, a ...any) {
	l.assumptions = append(l.assumptions, fmt.Sprintf(format, a...))
}

// tell writes the assumptions of l to stderr, each once, for documents that do not list
// them.
func (c *console) tell(l loaded) {
	for _, text := range l.assumptions {
		if !slices.Contains(c.told, text) {
			c.told = append(c.told, text)
			if text == l.unnamed {
				c.assumed("%s", text)
				continue
			}
			c.note("%s", text)
		}
	}
}

// change puts the graph that a plan is for in place of the one it was made from.
func (l *loaded) change(f *plan.File) (err error) {
	if !f.Changes.None() && (l.Times != nil || l.Seconds != nil) {
		return fit.ErrTimes
	}
	l.Graph, err = f.Graph(l.Graph)
	return err
}

// loadGraph builds or imports the graph that f names.
func (c *console) loadGraph(f *graphFlags) (l loaded, err error) {
	if f.Workload != "" {
		if l.Graph, err = await(c, func() (*graph.Graph, error) { return workloads.Build(f.Workload) }); err != nil {
			if errors.Is(err, context.Canceled) {
				return l, err
			}
			return l, usage(err)
		}
	} else if err := c.importGraph(f, &l); err != nil {
		return l, err
	}
	if f.Times == "" {
		return l, nil
	}
	if l.Times, err = times.ReadFile(f.Times); err != nil {
		return l, err
	}
	if err := l.Times.Check(l.Graph); err != nil {
		return l, fmt.Errorf("%s: %w", f.Times, err)
	}
	if l.Times.Issue > 0 {
		l.assume("%s: predictions leave out the host, which takes %v to issue a step's ops: no step issued op by op is shorter", f.Times, units.Seconds(l.Times.Issue))
	}
	return l, nil
}

// importGraph reads the graph file that f names.
func (c *console) importGraph(f *graphFlags, l *loaded) error {
	config := onnx.Default()
	config.Dims, config.Training = f.Dims, f.Train != ""
	x, name, err := (*formats.File)(nil), f.Graph, error(nil)
	if name == "-" {
		name = "stdin"
		if x, err = formats.ReadFrom(c.in, name, config); err != nil {
			return err
		}
	} else if x, err = await(c, func() (*formats.File, error) { return formats.ReadFile(name, config) }); err != nil {
		return err
	}
	l.file, l.Source = *x, problem.Source{Graph: x.Graph, Times: x.Times, Seconds: x.Seconds}
	if err := checkDims(x, f); err != nil {
		return err
	}
	for _, n := range x.Notes {
		l.assume("%s: %s", name, n)
	}
	if x.ONNX != nil {
		for _, d := range x.ONNX.Symbols {
			if !d.Given {
				l.assume("%s: dimension %s has no value and is taken as %d; --dim %s=N sets it", name, d.Name, d.Value, d.Name)
			}
		}
	}
	if f.Train == "" {
		return nil
	}
	if l.Seconds != nil || l.Times != nil {
		return fmt.Errorf("%s: --train needs ops that it can derive, the file names none", f.Graph)
	}
	how := train.Default()
	how.MasterWeights = f.MasterWeights
	how.StaticShapes = x.Form.Sized && !f.several && known(l.Graph)
	how.DenseTables = !x.Form.Rows
	if how.Optimizer, err = train.ParseOptimizer(f.Train); err != nil {
		return usage(err)
	}
	if f.MasterWeights && !train.Narrow(l.Graph) {
		l.assume("%s: --master-weights changes nothing: no weight is of f16 or bf16", name)
	}
	forward := l.Graph
	if l.Graph, err = await(c, func() (*graph.Graph, error) { return train.Derive(forward, how) }); err != nil {
		return fmt.Errorf("%s: %w", f.Graph, err)
	}
	return nil
}

// known reports whether every dimension of every tensor of g is known, but for constants,
// whose gradients nobody asks for.
func known(g *graph.Graph) bool {
	for i := range graph.OpID(g.NumOps()) {
		first, end := g.Outputs(i)
		for t := first; t < end; t++ {
			if g.Tensor(t).Shape == nil && g.Op(i).Kind.Class() != graph.ClassConst {
				return false
			}
		}
	}
	return true
}

// checkDims reports dimensions that --dim gives a value and the file does not have: a
// slip in a name would leave the dimension at 1.
func checkDims(l *formats.File, f *graphFlags) error {
	switch {
	case len(f.Dims) == 0:
		return nil
	case len(l.UnknownDims) == 0 && len(l.Dims) > 0:
		return nil
	case len(l.Dims) == 0:
		return usagef("--dim: %s leaves no dimension open by name", f.Graph)
	}
	return usagef("--dim %s: %s has no dimension of that name, want one of %s", l.UnknownDims[0], f.Graph, strings.Join(l.Dims, ", "))
}

// load returns the graph and the machine that the flags name, and tells of what they
// leave open.
func (c *console) load(f *inputFlags) (l loaded, m *hw.Machine, err error) {
	if l, m, err = c.loadInputs(f); err == nil {
		c.tell(l)
	}
	return l, m, err
}

// loadUnder is load where transfers share links as contention says.
func (c *console) loadUnder(f *inputFlags, contention string) (l loaded, m *hw.Machine, err error) {
	if err := bench.CheckOptions(&problem.Options{Scheduler: problem.FIFO, Contention: contention}); err != nil {
		return l, nil, err
	}
	return c.load(f)
}

// loadInputs is load without a word: the machine is looked at first if the flags name it.
func (c *console) loadInputs(f *inputFlags) (l loaded, m *hw.Machine, err error) {
	if f.named() {
		if m, err = c.loadMachine(&f.machineFlags); err != nil {
			return l, nil, err
		}
	}
	if l, err = c.loadGraph(&f.graphFlags); err != nil {
		return l, nil, err
	}
	if m == nil {
		if m, err = c.machineFor(&f.machineFlags, l); err != nil {
			return l, nil, err
		}
		if l.Times == nil {
			l.assumeMachine(m)
		}
	}
	return l, m, nil
}

// assumeMachine says that nobody has named machine m.
func (l *loaded) assumeMachine(m *hw.Machine) {
	l.unnamed = fmt.Sprintf("no machine is named: %s, %s; --gpu, --machine and --gpus choose another", m.Name, devicesInWords(m))
	l.assume("%s", l.unnamed)
}

// machineFor returns the machine that f names or, where it names none, that of the
// file that l was read from.
func (c *console) machineFor(f *machineFlags, l loaded) (*hw.Machine, error) {
	if l.Times == nil || f.named() {
		return c.loadMachine(f)
	}
	if f.CUDAGraph {
		return nil, usagef("--cuda-graph: the file's devices come with times of ops, launches in them; name a machine")
	}
	t := l.Times
	if f.GPUs > 0 {
		t = t.On(f.GPUs)
	}
	m, err := t.Machine()
	if err != nil {
		return nil, err
	}
	return m, f.hasCPU(m)
}

// devicesInWords counts the devices of m by model: "8 P100-PCIe-16GB".
func devicesInWords(m *hw.Machine) string {
	var models []string
	count := map[string]int{}
	for _, d := range m.Devices {
		if count[d.Model]++; count[d.Model] == 1 {
			models = append(models, d.Model)
		}
	}
	for i, name := range models {
		models[i] = fmt.Sprintf("%d %s", count[name], name)
	}
	return strings.Join(models, ", ")
}

// readMachine reads the machine file at path, or stdin for "-".
func (c *console) readMachine(path string) (*hw.Machine, error) {
	if path != "-" {
		return hw.ReadFile(path)
	}
	m, err := hw.Read(c.in)
	if err != nil {
		return nil, fmt.Errorf("stdin: %w", err)
	}
	return m, nil
}

// hasCPU reports that --cpu asks for a device that m does not have.
func (f *machineFlags) hasCPU(m *hw.Machine) error {
	if f.CPU && !slices.ContainsFunc(m.Devices, func(d hw.Device) bool { return d.Kind == hw.CPU }) {
		return usagef("--cpu: machine %s has no CPU", m.Name)
	}
	return nil
}

// loadMachine returns the machine that f names, as its steps are launched.
func (c *console) loadMachine(f *machineFlags) (*hw.Machine, error) {
	m, err := c.wholeMachine(f)
	if err != nil || !f.CUDAGraph {
		return m, err
	}
	for i := range m.Devices {
		if d := &m.Devices[i]; d.Kind == hw.GPU && d.GraphLaunch == 0 {
			return nil, usagef("--cuda-graph: machine %s does not say what a kernel costs %s (%s) in a graph: add \"graph_launch\" to its file", m.Name, d.Name, d.Model)
		}
	}
	return m.Captured(), nil
}

// wholeMachine returns the machine that f names as its file has it.
func (c *console) wholeMachine(f *machineFlags) (m *hw.Machine, err error) {
	if f.Machine == "" {
		if m, err = hw.Load(cmp.Or(f.GPU, defaultGPU)); err != nil {
			return nil, usage(err)
		}
	} else {
		if m, err = c.readMachine(f.Machine); err != nil {
			return nil, err
		}
		if name, share := contended(m); share < sharedEnough {
			c.note("machine %s: a %s that streams beside another reaches %.0f%% of its memory bandwidth, which predictions leave out", m.Name, name, 100*share)
		}
		if f.GPUs == 0 { // a machine file says itself what there is
			return m, f.hasCPU(m)
		}
	}
	gpus := f.GPUs
	if gpus == 0 {
		for _, d := range m.Devices {
			if d.Kind == hw.GPU {
				gpus++
			}
		}
	}
	if m, err = m.Take(gpus, f.CPU); err != nil {
		return nil, usage(err)
	}
	return m, nil
}

// sharedEnough is the share of its memory bandwidth that a core keeps beside another
// above which the difference is not worth a word.
const sharedEnough = 0.9

// contended returns the model of the device of m that keeps the least share of its
// memory bandwidth while another streams too, and that share.
func contended(m *hw.Machine) (model string, share float64) {
	share = 1
	for i := range m.Devices {
		d := &m.Devices[i]
		if x := float64(d.SharedMemoryBandwidth / d.MemoryBandwidth); d.SharedMemoryBandwidth > 0 && x < share {
			model, share = d.Model, x
		}
	}
	return model, share
}
