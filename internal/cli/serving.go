package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"placer/graph"
	"placer/graph/merge"
	"placer/graph/strategy"
	"placer/hw"
	"placer/internal/report"
	"placer/placer/serving"
	"placer/placer/strategies/launch"
)

// servingFlags are the flags of serving.
type servingFlags struct {
	inputFlags
	prompt, answer int64
	cached         int64
	ttft, tpot     time.Duration
	rate, price    float64
	strategy       string
	program        string
	sequences      int64
	workers        int
	disaggregated  bool
	json           bool
}

func (c *console) servingCommand() *cobra.Command {
	var f servingFlags
	cmd := &cobra.Command{
		Use:   "serving",
		Short: "Say how many requests GPUs serve with a language model, and how",
		Long: "serving says how many requests a second replicas of a language model serve that batch\n" +
			"continuously, as vLLM, SGLang and TensorRT-LLM do: for each way to divide a replica among\n" +
			"GPUs, the number of sequences at once that serves most within memory and the limits of\n" +
			"latency, the times to the first and between tokens, and tokens a second for each GPU.",
		Example: "  placer serving --graph config.json --gpu h100 --gpus 8 --prompt 2048 --answer 256 --tpot 50ms\n" +
			"  placer serving --graph config.json --gpu h100 --prompt 1000 --answer 500 --rate 40 --price 2.50",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return c.serving(cmd.Context(), &f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Graph, "graph", "", "decoder's `FILE`: config.json of Hugging Face, GGUF, safetensors (docs/doors.md)")
	addDims(fl, &f.Dims)
	fl.StringVar(&f.Machine, "machine", "", "machine `FILE`, as 'placer machines init' writes it; - reads stdin")
	fl.StringVar(&f.GPU, "gpu", "", "built-in machine by `NAME`, as 'placer machines' lists them (default "+defaultGPU+")")
	fl.IntVar(&f.GPUs, "gpus", 0, "use the first `N` GPUs of the machine (default all)")
	fl.Int64Var(&f.prompt, "prompt", 1024, "`N` tokens of a request")
	fl.Int64Var(&f.answer, "answer", 256, "`N` tokens of its answer")
	fl.Int64Var(&f.cached, "cached", 0, "first `N` tokens of it that the server has cached from other requests (prefix caching)")
	fl.DurationVar(&f.ttft, "ttft", 0, "most `TIME` to the first token of a request that need not wait, as 1s (default any)")
	fl.DurationVar(&f.tpot, "tpot", 0, "most `TIME` between two tokens in the mean, as 50ms (default any)")
	fl.Float64Var(&f.rate, "rate", 0, "`R` requests a second to serve: says how many GPUs each way needs")
	fl.Float64Var(&f.price, "price", 0, "`PRICE` of a GPU for an hour: says that of a million tokens")
	fl.Int64Var(&f.sequences, "sequences", 1024, "most `N` sequences of a replica at once, as the server is set to (vLLM: --max-num-seqs)")
	fl.StringVar(&f.strategy, "strategy", "", "this way alone, `TEXT` as the table has it: '1f1b=2 tp=4', 'one device'")
	fl.StringVar(&f.program, "for", "", "say how `PROGRAM` runs the best way: "+strings.Join(launch.Servers(), ", "))
	fl.BoolVar(&f.disaggregated, "disaggregated", false, "say too what GPUs serve of which some read prompts and the others decode")
	addFewWorkers(fl, &f.workers, "`N` ways simulated at once")
	fl.BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// servingDims are those that the command sets.
var servingDims = []string{"batch", "seq", "past"}

func (f *servingFlags) check(cmd *cobra.Command) error {
	if f.Graph == "" {
		return usagef("name a decoder by --graph: its config.json, GGUF or safetensors")
	}
	if err := f.inputFlags.check(cmd); err != nil {
		return err
	}
	for _, d := range servingDims {
		if _, ok := f.Dims[d]; ok {
			return usagef("--dim %s: serving sets it, from --prompt and --answer", d)
		}
	}
	switch {
	case f.Graph == "-":
		return usagef("--graph -: serving reads the file once for each size of a step, name a file")
	case f.ttft < 0 || f.tpot < 0 || cmd.Flags().Changed("ttft") && f.ttft == 0 || cmd.Flags().Changed("tpot") && f.tpot == 0:
		return usagef("--ttft %v, --tpot %v: want more than 0", f.ttft, f.tpot)
	case !(f.rate >= 0 && f.rate <= 1e9) || cmd.Flags().Changed("rate") && f.rate == 0:
		return usagef("--rate %g: want more than 0, at most 1e9", f.rate)
	case !(f.price >= 0 && f.price <= 1e9):
		return usagef("--price %g: want 0 to 1e9", f.price)
	case f.workers < 1:
		return usagef("--workers %d: want at least 1", f.workers)
	case f.disaggregated && f.answer == 1:
		return usagef("--disaggregated: %v", serving.ErrNotApart)
	}
	if _, err := f.launcher(); err != nil {
		return err
	}
	_, err := f.config()
	return err
}

// config returns what is asked, but for the machine.
func (f *servingFlags) config() (serving.Config, error) {
	c := serving.Config{Load: serving.Load{Prompt: f.prompt, Output: f.answer, Cached: f.cached, TTFT: f.ttft.Seconds(), TPOT: f.tpot.Seconds()}, Sequences: f.sequences, Workers: f.workers}
	if f.strategy != "" {
		s, err := strategy.Parse(f.strategy)
		if err != nil {
			return c, usage(err)
		}
		c.Strategy = &s
	}
	if err := c.Validate(); err != nil {
		return c, usage(err)
	}
	return c, nil
}

// launcher returns the server of --for; the zero Program where there is none.
func (f *servingFlags) launcher() (p launch.Program, err error) {
	if f.program == "" {
		return p, nil
	}
	if p, err = launch.Find(f.program); err != nil || !p.Serves() {
		return p, usagef("--for %s: want a server: %s", f.program, strings.Join(launch.Servers(), ", "))
	}
	return p, nil
}

// serving finds what replicas serve and prints it.
func (c *console) serving(ctx context.Context, f *servingFlags) error {
	how, err := f.config()
	if err != nil {
		return err
	}
	if how.Machine, how.Captured, err = c.servingMachines(f); err != nil {
		return err
	}
	if f.disaggregated && f.rate == 0 && len(how.Machine.Ranks()) < 2 {
		return usagef("--disaggregated: want at least 2 GPUs, or --rate")
	}
	if err := c.checkDecoder(&f.graphFlags); err != nil {
		return err
	}
	first, err := c.decoderStep(f, 1, 1, f.prompt)
	if err != nil {
		return err
	}
	if !f.named() {
		first.assumeMachine(how.Machine)
	}
	first.assumptions = slices.DeleteFunc(first.assumptions, func(s string) bool { return strings.HasSuffix(s, "other sizes by --dim") }) // which the command sets
	c.tell(first)
	model := func(batch, seq, past int64) (*graph.Graph, error) {
		l, err := c.decoderStep(f, batch, seq, past)
		if err != nil {
			return nil, err
		}
		return merge.Products(l.Graph, merge.All)
	}
	planner, err := serving.NewPlanner(model, how)
	if err != nil {
		return err
	}
	say := func(format string) func(r *serving.Row) {
		return func(r *serving.Row) {
			found := r.Why
			if found == "" {
				found = fmt.Sprintf(format, r.Rate, r.Batch)
			}
			c.say("%v: %s", r.Strategy, found)
		}
	}
	rows := planner.Rows(ctx, say("%.4g requests/s with %d sequences"))
	best := serving.Best(rows, f.rate)
	var apart *serving.Apart
	if f.disaggregated {
		if apart, err = planner.Apart(ctx, f.rate, say("reads %.4g prompts/s, %d a step"), say("decodes %.4g requests/s with %d sequences")); err != nil {
			return err
		}
	}
	doc := report.DescribeServing(first.Graph.Name(), how.Machine, how.Load, rows, f.rate, f.price, c.clock())
	doc.Assumptions = first.assumptions
	if f.disaggregated && ctx.Err() == nil {
		doc.Disaggregate(apart)
	}
	if best != nil && f.program != "" {
		doc.Launch = f.launch(best)
	}
	if err := c.print(f.json, doc); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return interrupted("interrupted: ways not simulated yet are not in the table")
	case !doc.Served():
		return fmt.Errorf("graph %s: no way serves the load; the output says why", first.Graph.Name())
	}
	return nil
}

// launch says how the server of --for runs a row.
func (f *servingFlags) launch(r *serving.Row) *report.Launch {
	l := &report.Launch{Program: f.program, Row: "each replica", Strategy: report.Division(r)}
	program, err := f.launcher()
	if err == nil {
		l.Flags, err = program.Serving(r.Strategy, r.Batch, f.Dims["cache_bits"] == 8)
	}
	if err != nil {
		l.Row, l.Why = "", err.Error()
	}
	return l
}

// servingMachines returns the machine whose host launches kernels, and the same replaying graphs, where
// it says what a kernel costs then.
func (c *console) servingMachines(f *servingFlags) (launched, captured *hw.Machine, err error) {
	if launched, err = c.loadMachine(&f.machineFlags); err != nil {
		return nil, nil, err
	}
	for i := range launched.Devices {
		if d := &launched.Devices[i]; d.Kind == hw.GPU && d.GraphLaunch == 0 {
			c.assumed("machine %s does not say what a kernel costs in a replayed graph (graph_launch): decoding steps launch each", launched.Name)
			return launched, launched, nil
		}
	}
	return launched, launched.Captured(), nil
}

// decoderStep loads a step of f's decoder.
func (c *console) decoderStep(f *servingFlags, batch, seq, past int64) (loaded, error) {
	at := f.graphFlags
	at.several, at.Dims = true, maps.Clone(f.Dims)
	if at.Dims == nil {
		at.Dims = map[string]int64{}
	}
	at.Dims["batch"], at.Dims["seq"] = batch, seq
	if past > 0 {
		at.Dims["past"] = past
	}
	return c.loadGraph(&at)
}

// checkDecoder reports that a file is none of a decoder whose steps can be chosen.
func (c *console) checkDecoder(f *graphFlags) error {
	l, err := c.loadGraph(f)
	if err != nil {
		return err
	}
	for _, d := range servingDims {
		if !slices.Contains(l.file.Dims, d) {
			return usagef("--graph %s: serving wants a decoder's file, in which batch, seq and past are open: config.json, GGUF, safetensors", f.Graph)
		}
	}
	return nil
}
