package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"placer/baselines/partition/stages"
	"placer/graph"
	"placer/graph/formats/dnnpart"
	"placer/graph/formats/foreign"
	"placer/graph/formats/onnxcut"
	"placer/graph/formats/tensorflow"
	"placer/hw"
	"placer/internal/fsx"
	"placer/placer/problem"
	"placer/plan"
	"placer/plan/formats"
	"placer/sim"
	"placer/sim/schedule"
	"placer/sim/throughput"
	"placer/units"
)

// exportFlags are the flags of the export command.
type exportFlags struct {
	inputFlags
	plan, split   string
	to, objective string
	contention    string
	out           string
}

func (c *console) exportCommand() *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write a plan for another program, or another program's as a plan",
		Long: "export writes a plan in the form of another program. --to schedule writes what any\n" +
			"runtime needs: the ops by name, with their devices, in the order of their simulated\n" +
			"start. --to vllm, accelerate, deepspeed and the like write a placement of modules\n" +
			"(docs/doors.md); where such a form cannot express the plan, the nearest plan that it\n" +
			"can express is written, and both costs are printed. 'placer simulate --plan' reads\n" +
			"these forms back.\n\n" +
			"A graph from a dnn-partitioning or PipeDream file has forms of its own, --to split and\n" +
			"--to pipedream. With --split, or for a profile that names stages, export writes that\n" +
			"placement as a plan.",
		Example: "  placer export --graph model.json --machine here.json --plan runs/gpt/plan.json \\\n" +
			"     --to schedule -o schedule.json\n" +
			"  placer export --graph bert24_training.json --plan runs/bert/plan.json --to split -o split.json\n" +
			"  placer export --graph bert24_training.json --split expert.json -o plan.json\n" +
			"  placer export --graph vgg16.graph.txt --gpus 4 --plan plan.json \\\n" +
			"     --to pipedream -o vgg16_partitioned.txt",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(f.check(cmd, f.plan, f.split), f.checkForm(cmd)); err != nil {
				return err
			}
			if _, err := sim.ParseContention(f.contention); f.contention != "" && err != nil {
				return usage(err)
			}
			if f.plan != "" && f.split != "" {
				return usagef("--plan and --split exclude each other")
			}
			if _, err := plan.ParseObjective(f.objective); err != nil {
				return usage(err)
			}
			write, err := c.export(cmd.Context(), &f)
			if err != nil {
				return err
			}
			if f.plan != "" && !cmd.Flags().Changed("to") {
				c.note("without --to this is the plan itself; other forms are schedule, split, pipedream,\n  %s", targetNames())
			}
			return c.writeOutput(f.out, write)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&f.plan, "plan", "", "plan `FILE`, or the form of another program, to write in that form; - reads stdin")
	cmd.Flags().StringVar(&f.split, "split", "", "split `FILE` of a dnn-partitioning instance to write as a plan; - reads stdin")
	cmd.Flags().StringVar(&f.to, "to", "plan", "`FORM`: plan, schedule (names, devices and a static order, for runtimes), split (dnn-partitioning), pipedream (a profile with stages), or a program: "+targetNames()+"; --as is the same flag")
	cmd.Flags().StringVar(&f.objective, "objective", string(plan.Step), "what the nearest plan that a program can take is chosen by: step, throughput or memory")
	alias(cmd.Flags(), "as", "to")
	addContention(cmd.Flags(), &f.contention)
	cmd.Flags().StringVarP(&f.out, "output", "o", "-", "`FILE` to write; - is stdout")
	return cmd
}

// export returns what writes the placement.
func (c *console) export(ctx context.Context, f *exportFlags) (func(io.Writer) error, error) {
	l, m, err := c.load(&f.inputFlags)
	if err != nil {
		return nil, err
	}
	p, changed, err := c.placementOf(f, &l, m)
	if err != nil {
		return nil, err
	}
	switch f.to {
	case "plan":
		file, err := p.File(l.Graph, m)
		if err != nil {
			return nil, err
		}
		if changed != nil {
			file.GraphHash, file.Changes, file.ChangedHash = changed.GraphHash, changed.Changes, changed.ChangedHash
		}
		return file.Write, nil
	case "schedule":
		s, err := simulateSchedule(l, m, p, f.contention)
		if err != nil {
			return nil, err
		}
		return s.schedule.Write, nil
	case "split":
		return exportSplit(l.file.Partitioning, p)
	case "pipedream":
		if l.file.Profile == nil {
			return nil, usagef("--to pipedream goes with a PipeDream profile as --graph")
		}
		return func(w io.Writer) error { return l.file.Profile.Write(w, p.Device) }, nil
	case "graphdef":
		return c.exportGraphDef(f, l, m, p)
	case "onnx":
		return c.exportONNX(ctx, f, l, m, p)
	case "onnx-devices":
		return c.exportONNXDevices(f, l, m, p)
	}
	t, err := formats.Find(f.to)
	if err != nil {
		return nil, err
	}
	return c.exportTo(ctx, t, f, l, m, p)
}

// checkForm reports a form that there is not, and flags that do nothing for one.
func (f *exportFlags) checkForm(cmd *cobra.Command) error {
	what := "--to " + f.to
	switch f.to {
	case "plan", "split", "pipedream", "onnx-devices":
		return useless(cmd, what, "contention", "objective")
	case "schedule", "graphdef": // any plan can be said in these
		return useless(cmd, what, "objective")
	case "onnx":
		return nil
	}
	if _, err := formats.Find(f.to); err != nil {
		return usagef("%s: want plan, schedule, split, pipedream, %s", what, targetNames())
	}
	return nil
}

// placementOf returns the placement that f names, of the plan's changed graph, which l then
// is; and the plan's file where it is one.
func (c *console) placementOf(f *exportFlags, l *loaded, m *hw.Machine) (*plan.Plan, *plan.File, error) {
	switch {
	case f.plan != "":
		return c.planFileOf(f.plan, l, m)
	case f.split != "":
		if l.file.Partitioning == nil {
			return nil, nil, usagef("--split goes with a dnn-partitioning instance as --graph")
		}
		data, err := c.readPlacement(f.split)
		if err != nil {
			return nil, nil, err
		}
		s, err := l.file.Partitioning.ReadSplit(data, inputName(f.split))
		if err != nil {
			return nil, nil, err
		}
		return &plan.Plan{Graph: l.Hash(), Machine: m.Name, Method: "split", Decision: plan.Decision{Device: s.Device}}, nil, nil
	case l.file.Profile != nil:
		stage, n := l.file.Profile.Stages()
		if n == 0 {
			return nil, nil, usagef("%s names no stages: name a plan by --plan", f.Graph)
		}
		return &plan.Plan{Graph: l.Hash(), Machine: m.Name, Method: "pipedream", Decision: plan.Decision{Device: stage}}, nil, nil
	}
	return nil, nil, usagef("name a placement by --plan or --split")
}

// targetNames lists the programs that placements are written for.
func targetNames() string {
	return strings.Join(append([]string{"graphdef", "onnx", "onnx-devices"}, moduleTargets()...), ", ")
}

// moduleTargets lists the programs that place modules.
func moduleTargets() (names []string) {
	for _, t := range formats.Targets() {
		names = append(names, t.Name)
	}
	return names
}

// exportGraphDef returns what writes the TensorFlow graph that --graph names with the
// devices of p, and its simulated order as control edges.
func (c *console) exportGraphDef(f *exportFlags, l loaded, m *hw.Machine, p *plan.Plan) (func(io.Writer) error, error) {
	if l.file.Form.Name != "GraphDef" || f.Graph == "-" {
		return nil, usagef("--to graphdef goes with a file of TensorFlow's GraphDef as --graph")
	}
	s, err := simulateSchedule(l, m, p, f.contention)
	if err != nil {
		return nil, err
	}
	data, err := foreign.ReadFile(f.Graph)
	if err != nil {
		return nil, err
	}
	var order []tensorflow.Placed
	for _, o := range s.schedule.Ops {
		order = append(order, tensorflow.Placed{Name: o.Name, Device: formats.TensorFlowDevice(m, uint8(o.Device))})
	}
	out, err := tensorflow.Place(data, f.Graph, order)
	return func(w io.Writer) error { _, err := w.Write(out); return err }, err
}

// exportONNX writes the ONNX model that --graph names as one model a stage of the
// nearest contiguous plan, beside the list of them that it returns the writer of.
func (c *console) exportONNX(ctx context.Context, f *exportFlags, l loaded, m *hw.Machine, p *plan.Plan) (func(io.Writer) error, error) {
	if l.file.ONNX == nil || f.Graph == "-" || f.Train != "" {
		return nil, usagef("--to onnx goes with an ONNX file as --graph, without --train")
	}
	if f.out == "-" {
		return nil, usagef("--to onnx writes several files: name the list of them by -o, as in -o stages.json")
	}
	out, err := c.nearest(ctx, formats.Target{Name: "onnx", Stages: true, Ops: true}, f, l, m, p)
	if err != nil {
		return nil, err
	}
	data, err := foreign.ReadFile(f.Graph)
	if err != nil {
		return nil, err
	}
	ops := map[string]graph.OpID{}
	for i := range l.NumOps() {
		ops[l.Op(graph.OpID(i)).Name] = graph.OpID(i)
	}
	order := m.Accelerators()
	cut, err := onnxcut.Cut(data, f.Graph, func(n *onnxcut.Node) int {
		if op, ok := ops[n.Name]; ok {
			return slices.Index(order, out.Device[op])
		}
		return -1 // folded
	}, func(n *onnxcut.Node, k int) (int32, []int64) { return l.file.ONNX.Type(n.Outputs[k]) })
	if err != nil {
		return nil, err
	}
	for _, name := range l.file.ONNX.Data {
		if at := filepath.Join(filepath.Dir(f.out), filepath.FromSlash(name)); !isFile(at) {
			c.note("the stages read weights from %s, as the model does: it has to be at %s", name, at)
		}
	}
	list := &formats.ONNXStages{}
	base := strings.TrimSuffix(f.out, filepath.Ext(f.out))
	for k, s := range cut {
		path := fmt.Sprintf("%s.%d.onnx", base, k)
		if err := fsx.WriteFile(path, func(w io.Writer) error { _, err := w.Write(s.Model); return err }); err != nil {
			return nil, err
		}
		list.Stages = append(list.Stages, formats.ONNXStage{File: filepath.Base(path), Device: m.Devices[order[min(k, len(order)-1)]].Name, Inputs: s.Inputs, Outputs: s.Outputs, Nodes: s.Nodes})
	}
	text, err := list.Bytes()
	return func(w io.Writer) error { _, err := w.Write(text); return err }, err
}

// exportONNXDevices returns what writes the ONNX model that --graph names with the device
// of each node. What is no op of the graph, such as a folded constant, is on the first.
func (c *console) exportONNXDevices(f *exportFlags, l loaded, m *hw.Machine, p *plan.Plan) (func(io.Writer) error, error) {
	if l.file.ONNX == nil || f.Graph == "-" || f.Train != "" {
		return nil, usagef("--to onnx-devices goes with an ONNX file as --graph, without --train")
	}
	data, err := foreign.ReadFile(f.Graph)
	if err != nil {
		return nil, err
	}
	device := map[string]int{}
	for i := range graph.OpID(l.NumOps()) {
		device[l.Op(i).Name] = int(p.Device[i])
	}
	var names []string
	for i := range m.Devices {
		names = append(names, m.Devices[i].Name)
	}
	out, err := onnxcut.Annotate(data, f.Graph, names, func(n *onnxcut.Node) int { return device[n.Name] })
	return func(w io.Writer) error { _, err := w.Write(out); return err }, err
}

// exportTo returns what writes p in the form of t, or the nearest plan that t can take.
func (c *console) exportTo(ctx context.Context, t formats.Target, f *exportFlags, l loaded, m *hw.Machine, p *plan.Plan) (func(io.Writer) error, error) {
	parts, err := formats.FindParts(l.Graph)
	if err != nil {
		return nil, fmt.Errorf("--to %s: %w", t.Name, err)
	}
	out, err := c.nearest(ctx, t, f, l, m, p)
	if err != nil {
		return nil, err
	}
	s := t.Nearest(l.Graph, m, parts, out.Device, nil)
	if err := t.Legal(s); err != nil {
		return nil, fmt.Errorf("--to %s: no plan of its form was found: %w", t.Name, err)
	}
	return func(w io.Writer) error { return t.Write(w, s) }, nil
}

// nearest returns the nearest plan to p that t can take, and says what both cost. One that
// does not fit is an error.
func (c *console) nearest(ctx context.Context, t formats.Target, f *exportFlags, l loaded, m *hw.Machine, p *plan.Plan) (*plan.Outcome, error) {
	x, err := problem.New(l.Source, m, problem.Options{Objective: plan.Objective(f.objective), Contention: f.contention})
	if err != nil {
		return nil, err
	}
	compile(x, t)
	out, _, err := stages.Nearest(ctx, &x.Problem, t, p.Device)
	if err != nil {
		return nil, err
	}
	was, is := x.Evaluate(p.Device), x.Evaluate(out.Device)
	moved := 0
	for i := range p.Device {
		if p.Device[i] != out.Device[i] {
			moved++
		}
	}
	of := "the plan"
	if p.Priority != nil || p.Fusion != nil { // which no such form has, and neither cost counts
		of = "the plan's placement alone"
	}
	c.note("%s: %s %s, what %s can take of it %s: %d of %d ops moved", t.Name, of, judged(was, x.Objective), t.Name, judged(is, x.Objective), moved, l.NumOps())
	if ctx.Err() != nil {
		return nil, ctx.Err() // the nearest so far is no answer
	}
	if !is.Feasible() {
		return nil, fmt.Errorf("--to %s: %w", t.Name, tooMuch(is))
	}
	return out, nil
}

// judged says what a placement costs.
func judged(s plan.Score, o plan.Objective) string {
	text := "takes " + units.Seconds(s.Value).String()
	if o.Normal() == plan.Memory {
		text = "needs " + units.Bytes(s.Value).String()
	}
	if !s.Feasible() {
		text += fmt.Sprintf(" (%v too many)", s.Overflow)
	}
	return text
}

// scheduledStep is a simulated step with its static order.
type scheduledStep struct {
	result   *sim.Result // with a trace
	schedule *schedule.Schedule
}

// simulateSchedule simulates p under its own priorities; contention is as
// problem.Options says. It reports a plan that does not fit.
func simulateSchedule(l loaded, m *hw.Machine, p *plan.Plan, contention string) (*scheduledStep, error) {
	s, _, err := problem.Simulator(l.Source, m, problem.Options{Scheduler: problem.FIFO, Contention: contention})
	if err != nil {
		return nil, err
	}
	r, err := s.Run(p, sim.Options{Trace: true})
	if err != nil {
		return nil, err
	}
	return &scheduledStep{r, schedule.New(l.Graph, m, p, r)}, nil
}

// exportSplit returns what writes p as a split of x with its loads.
func exportSplit(x *dnnpart.Instance, p *plan.Plan) (func(io.Writer) error, error) {
	if x == nil {
		return nil, usagef("--to split goes with a dnn-partitioning instance as --graph")
	}
	m, err := x.Times.Machine()
	if err != nil {
		return nil, err
	}
	if err := p.Check(x.Graph, m); err != nil {
		return nil, fmt.Errorf("the plan is not for the instance's own machine: %w", err)
	}
	s, err := throughput.FromTable(x.Graph, m, x.Times)
	if err != nil {
		return nil, err
	}
	y, err := throughput.New(context.Background(), s)
	if err != nil {
		return nil, err
	}
	var load []float64
	for _, l := range y.Evaluate(y.Gather(p.Device)).Loads {
		load = append(load, 1e3*l.Seconds())
	}
	return func(w io.Writer) error { return x.WriteSplit(w, p.Device, load) }, nil
}
