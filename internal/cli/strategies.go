package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"placer/graph"
	"placer/graph/merge"
	"placer/graph/strategy"
	"placer/internal/report"
	"placer/placer/fit"
	"placer/placer/problem"
	"placer/placer/strategies"
	"placer/placer/strategies/launch"
	"placer/placer/strategies/torch"
	"placer/placer/verdict"
	"placer/plan"
)

// strategiesFlags are the flags of strategies.
type strategiesFlags struct {
	inputFlags
	batch       int64
	eager       bool
	oneShot     bool
	merged      string
	micro       int
	stages      []int
	strategy    string
	program     string
	output      string
	budget      time.Duration
	evaluations int
	seed        uint64
	workers     int
	json        bool
}

func (c *console) strategiesCommand() *cobra.Command {
	var f strategiesFlags
	cmd := &cobra.Command{
		Use:   "strategies",
		Short: "Compare data, pipeline, tensor parallelism and combinations",
		Long: "strategies divides a step of --batch samples among the devices in the ways that\n" +
			"training and serving systems do: replicas with all-reduced or sharded gradients (ddp,\n" +
			"zero-1 to zero-3), pipelines (gpipe, 1f1b, interleaved), tensor parallelism (tp),\n" +
			"context parallelism (cp), expert parallelism (ep), and combinations of these. Tensor\n" +
			"parallelism is also tried with a split vocabulary (vocab) and with sequence\n" +
			"parallelism (sp). Where a step does not fit, the activations of attention\n" +
			"(recompute=selective) or of all layers (recompute) are recomputed. Each strategy is\n" +
			"simulated as a graph with its communication.",
		Example: "  placer strategies --workload llama --gpu a100 --gpus 8 --batch 32\n" +
			"  placer strategies --graph model.onnx --train momentum --dim batch=256 --gpu h100",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return c.strategies(cmd.Context(), &f)
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().Int64Var(&f.batch, "batch", 0, "samples of a step, on all devices together; the workload's, or that of --dim batch=N, without it")
	cmd.Flags().BoolVar(&f.eager, "eager", false, "run every op as a kernel of its own, as a framework does without a compiler; else ops are fused by the default rules")
	cmd.Flags().BoolVar(&f.oneShot, "one-shot", false, "small all-reduces are one-shot kernels, in which every GPU of a host reads the data of all others, as in vLLM, SGLang and TensorRT-LLM; without it NCCL does all")
	cmd.Flags().StringVar(&f.merged, "merged", "", "inference with products merged that read the same activation: attention (queries, keys and values) or all (gate and up too), as vLLM, SGLang and TensorRT-LLM have them; --for vllm takes all, none leaves them apart")
	cmd.Flags().IntVar(&f.micro, "micro-batches", 0, "micro-batches of each replica (default the best number)")
	cmd.Flags().IntSliceVar(&f.stages, "stages", nil, "layers of each stage of a given pipeline, as 3,4,3,2: a row beside the optimal cut")
	cmd.Flags().StringVar(&f.strategy, "strategy", "", "simulate this strategy alone, `TEXT` as the table's column has it: 'zero-1=2 tp=4 vocab sp mb=8 recompute=selective', 'one device'")
	cmd.Flags().StringVar(&f.program, "for", "", "say how `PROGRAM` runs the best row that it can: "+strings.Join(launch.Names(), ", "))
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "file for the strategy by a model's modules, which --for torch needs (placer strategy 1; - is stdout)")
	cmd.Flags().DurationVar(&f.budget, "budget", 10*time.Second, "`TIME` of the search that places the micro-batched graph; 0 leaves it out")
	cmd.Flags().IntVar(&f.evaluations, "evaluations", 0, "evaluations of that search instead of --budget, for the same answer on every host")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed of every random choice")
	addFewWorkers(cmd.Flags(), &f.workers, "strategies simulated at once; changes the memory used, not the answer")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	exclusive(cmd, "budget", "evaluations", "strategy")
	exclusive(cmd, "micro-batches", "strategy")
	exclusive(cmd, "stages", "strategy")
	return cmd
}

func (f *strategiesFlags) check(cmd *cobra.Command) error {
	if err := f.inputFlags.check(cmd); err != nil {
		return err
	}
	switch {
	case f.batch < 0 || cmd.Flags().Changed("batch") && f.batch == 0:
		return usagef("--batch %d: want at least 1", f.batch)
	case f.batch > 0 && f.otherDim() != "":
		return usagef("--batch %d and --dim %s=%d say two numbers of samples", f.batch, f.otherDim(), f.Dims[f.otherDim()])
	case f.micro < 0 || cmd.Flags().Changed("micro-batches") && f.micro == 0:
		return usagef("--micro-batches %d: want at least 1", f.micro)
	case !slices.Contains([]string{"", "none", "attention", "all"}, f.merged):
		return usagef("--merged %s: want none, attention or all", f.merged)
	case cmd.Flags().Changed("strategy") && strings.TrimSpace(f.strategy) == "":
		return usagef("--strategy: want a strategy, as 'zero-1=2 tp=4', or 'one device'")
	case (f.program == launch.Torch) != (f.output != ""):
		return usagef("--for torch and -o FILE go together: the program reads the strategy from that file")
	case f.workers < 1:
		return usagef("--workers %d: want at least 1", f.workers)
	case cmd.Flags().Changed("evaluations") && f.evaluations < 1:
		return usagef("--evaluations %d: want at least 1; --budget 0 leaves the search out", f.evaluations)
	case f.budget < 0:
		return usagef("--budget %v: want at least 0", f.budget)
	case f.program == launch.Torch && f.Graph == "":
		return usagef("--for torch: name the graph of your model by --graph, as 'python -m placer_torch capture' writes it")
	case f.Times != "":
		return usagef("--times is for one graph: strategies derive others")
	case f.CPU:
		return usagef("--cpu: strategies divide a step among GPUs alone")
	case f.Graph == "-":
		return usagef("--graph -: strategies read the file once for each size of a micro-batch, name a file")
	}
	return checkOutput(f.output, f.json)
}

// strategies compares the ways to divide a step and prints them.
func (c *console) strategies(ctx context.Context, f *strategiesFlags) error {
	program, err := f.launcher()
	if err != nil {
		return err
	}
	x, step, err := c.openStrategies(f, program)
	if err != nil {
		return err
	}
	rows := x.Rows(ctx, c.sayRow)
	doc := report.CompareStrategies(step.graph.Name(), x.Machine(), step.batch, rows, c.clock())
	doc.Assumptions, doc.Interrupted = step.assumptions, ctx.Err() != nil
	var file *torch.File
	if f.program != "" {
		doc.Launch, file = f.launch(program, x, step, rows)
	}
	if file == nil {
		err = c.print(f.json, doc)
	} else {
		err = c.emit(f.output, file.Write, f.json, doc)
	}
	if err != nil {
		return err
	}
	switch best := strategies.Best(rows); {
	case ctx.Err() != nil:
		return interrupted("interrupted: strategies not simulated yet are not in the table")
	case best == nil:
		return fmt.Errorf("graph %s: no strategy can divide its step; the table says why", step.graph.Name())
	case !doc.Feasible():
		return tooMuch(best.Score())
	case f.output != "" && file == nil:
		return fmt.Errorf("%s: not written, %s runs none of the rows that fit", f.output, program.Name)
	}
	return nil
}

// launcher returns the program of --for; the zero Program where there is none.
func (f *strategiesFlags) launcher() (launch.Program, error) {
	if f.program == "" {
		return launch.Program{}, nil
	}
	program, err := launch.Find(f.program)
	if err != nil {
		return program, usage(err)
	}
	return program, nil
}

// dividedStep is the step that strategies divide.
type dividedStep struct {
	graph       *graph.Graph // of all samples, on one device
	batch       int64        // samples
	assumptions []string
}

// openStrategies loads graph and machine, says what it assumes of them, and returns the
// comparison of the ways to divide the step.
func (c *console) openStrategies(f *strategiesFlags, program launch.Program) (x *strategies.Comparison, step dividedStep, err error) {
	how, err := f.comparison(c.clock)
	if err != nil {
		return nil, step, err
	}
	m, err := c.loadMachine(&f.machineFlags)
	if err != nil {
		return nil, step, err
	}
	family, batch, err := c.family(&f.graphFlags, f.batch, func(l loaded) {
		c.tell(l)
		step.assumptions = l.assumptions
	})
	if err != nil {
		return nil, step, err
	}
	family = merged(family, f.products(program))
	if !f.named() {
		var unnamed loaded
		unnamed.assumeMachine(m)
		c.tell(unnamed)
	}
	g, err := family(batch)
	if err != nil {
		return nil, step, err
	}
	if err := c.mergedOf(g, f, program); err != nil {
		return nil, step, err
	}
	c.assumeState(g, &f.graphFlags)
	c.assumeMasters(g, f, program)
	if m, err = verdict.InOrder(problem.Source{Graph: g}, m); err != nil {
		return nil, step, err
	}
	step.graph, step.batch, how.Batch = g, batch, batch
	x, err = strategies.NewComparison(problem.Source{Graph: g}, family, m, how)
	return x, step, err
}

// launch says how program runs the best row that it can, and returns what it reads for that
// where it is torch; nil otherwise.
func (f *strategiesFlags) launch(program launch.Program, x *strategies.Comparison, step dividedStep, rows []strategies.Row) (l *report.Launch, file *torch.File) {
	l = launched(program, rows, func(r *strategies.Row) (flags string, err error) {
		flags, err = program.Flags(launch.Run{Strategy: r.Strategy, Batch: step.batch, Trains: x.Trains(), Mixture: x.Mixture(), Weights: launch.WeightsOf(step.graph), Layers: x.Layers(r), File: f.output})
		if err == nil && program.Name == launch.Torch {
			file, err = byModules(x, r, step.batch)
		}
		return flags, err
	})
	return l, file
}

// comparison returns how strategies are compared, but for the batch.
func (f *strategiesFlags) comparison(clock func() float64) (how strategies.Config, err error) {
	how = strategies.Config{Eager: f.eager, OneShot: f.oneShot, MicroBatches: f.micro, Stages: f.stages, Seed: f.seed, Clock: clock, Workers: f.workers, Budget: plan.Budget{Seconds: f.budget.Seconds()}}
	if f.evaluations > 0 {
		how.Budget = plan.Budget{Evaluations: f.evaluations}
	}
	if f.strategy != "" {
		s, err := strategy.Parse(f.strategy)
		if err != nil {
			return how, usage(err)
		}
		how.Strategy = &s
	}
	return how, nil
}

// products returns which products that read the same activation are merged: what --merged
// says, or what the program does.
func (f *strategiesFlags) products(program launch.Program) merge.Which {
	switch {
	case f.merged == "" && program.Merges, f.merged == "all":
		return merge.All
	case f.merged == "attention":
		return merge.Attention
	}
	return merge.Nothing
}

// mergedOf says that products of g are merged where nobody asked for it, and refuses it where
// g trains.
func (c *console) mergedOf(g *graph.Graph, f *strategiesFlags, program launch.Program) error {
	switch trains := strategy.Trains(g); {
	case trains && (f.merged == "all" || f.merged == "attention"):
		return usagef("--merged %s: products are merged for inference, and the step trains", f.merged)
	case !trains && f.merged == "" && program.Merges:
		c.say("products that read the same activation are merged, as %s merges them; --merged none leaves them apart", program.Name)
	}
	return nil
}

// sayRow tells what a row came to.
func (c *console) sayRow(r *strategies.Row) {
	found := r.Why
	if r.Result != nil {
		found = fmt.Sprintf("%.4g ms, %v", 1e3*r.Seconds, r.Strategy)
	}
	c.say("%s: %s", r.Name, found)
}

// byModules says the strategy of a row by the modules of its graph.
func byModules(x *strategies.Comparison, r *strategies.Row, batch int64) (*torch.File, error) {
	m, step, err := x.Folded(r)
	if err != nil {
		return nil, err
	}
	file, err := torch.New(m, step, batch)
	if err == nil {
		file.Predicted = torch.Predicted{Step: r.Seconds, Rate: float64(batch) / r.Seconds, Bytes: int64(r.Fullest())}
	}
	return file, err
}

// assumeMasters says that the program holds more than g does.
func (c *console) assumeMasters(g *graph.Graph, f *strategiesFlags, program launch.Program) {
	if !program.Masters || !fit.Narrow(g) {
		return
	}
	with := ""
	if way := f.masterWeights(); way != "" {
		with = "; predict that with " + way
	}
	c.assumed("%s holds state and a copy of the weights in f32, more than is predicted, so that its steps may not fit%s", program.Name, with)
}

// launched says how a program runs the best of rows that it can run, by the flags of a row that
// is no placement.
func launched(p launch.Program, rows []strategies.Row, flags func(*strategies.Row) (string, error)) *report.Launch {
	l := &report.Launch{Program: p.Name}
	fit := slices.DeleteFunc(slices.Clone(rows), func(r strategies.Row) bool { return r.Result == nil || r.Overflow > 0 })
	slices.SortStableFunc(fit, func(a, b strategies.Row) int { return cmp.Compare(a.Seconds, b.Seconds) })
	for k := range fit {
		r := &fit[k]
		text, err := "", launch.ErrPlacement
		if r.Device == nil {
			text, err = flags(r)
		}
		if err == nil {
			l.Row, l.Strategy, l.Flags = r.Name, r.Strategy.String(), text
			return l
		}
		if k == 0 {
			l.Why = err.Error()
		}
	}
	return l
}
