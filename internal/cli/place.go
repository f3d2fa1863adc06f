package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"placer/baselines/rules"
	"placer/internal/bench"
	"placer/internal/fsx"
	"placer/internal/report"
	"placer/placer/policy/sequential"
	"placer/placer/pretrained"
	"placer/placer/problem"
	"placer/plan"
)

// builtIn names the policy that the program carries.
const builtIn = "built-in"

// placeFlags are the flags of place and finetune.
type placeFlags struct {
	inputFlags
	policy    string
	scheduler string
	tasks     string
	output    string
	seed      uint64
	json      bool
}

func (f *placeFlags) add(cmd *cobra.Command) {
	f.inputFlags.add(cmd.Flags())
	cmd.Flags().StringVar(&f.policy, "policy", builtIn, "policy `FILE`, or "+builtIn+"; - reads stdin")
	cmd.Flags().StringVar(&f.scheduler, "scheduler", string(problem.CriticalPath), "order in which a device runs its ready ops: critical-path or fifo")
	cmd.Flags().StringVar(&f.tasks, "tasks", plan.Place.String(), "what the policy decides: place, schedule and fuse, separated by commas; what is left out is as --scheduler says, and nothing is fused")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "write the best plan to this file; - writes it to stdout instead of the table")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed of every random choice")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
}

func (f *placeFlags) check(cmd *cobra.Command) error {
	if err := f.inputFlags.check(cmd, f.policy); err != nil {
		return err
	}
	if err := bench.CheckOptions(&problem.Options{Scheduler: problem.Scheduler(f.scheduler)}); err != nil {
		return err
	}
	return checkOutput(f.output, f.json)
}

// zeroShotFlags are the flags of the place command.
type zeroShotFlags struct {
	placeFlags
	samples int
	direct  bool // all samples are judged
	card    bool // of the policy, in place of a placement
}

func (c *console) placeCommand() *cobra.Command {
	var f zeroShotFlags
	cmd := &cobra.Command{
		Use:   "place",
		Short: "Place a graph by a pretrained policy, without a search",
		Long: "place lets a pretrained policy place a graph, which it need not have seen: forward\n" +
			"passes only, no search. It prints the greedy placement and the best of the samples\n" +
			"beside the human expert's, and says when the graph is out of distribution: beyond what\n" +
			"the policy was trained and measured on.",
		Example: "  placer place --workload gnmt8 --gpus 8 -o plan.json\n  placer place --graph model.onnx --train adam --gpus 4 --samples 64\n  placer place --card",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			policy, err := c.loadPolicy(f.policy)
			if err != nil {
				return err
			}
			if f.card {
				return c.print(f.json, cardOf(inputName(f.policy), policy))
			}
			return c.place(cmd.Context(), &f, policy)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&f.direct, "direct", false, "make as many placements as --samples says and judge all of them, instead of choosing among rollouts and improving the best")
	cmd.Flags().IntVar(&f.samples, "samples", sequential.DefaultSamples, "placements to sample, the greedy one among them")
	cmd.Flags().BoolVar(&f.card, "card", false, "print what the policy was trained on and how it did on graphs held out, and place nothing")
	return cmd
}

// check reports the first fault.
func (f *zeroShotFlags) check(cmd *cobra.Command) error {
	if f.card {
		return useless(cmd, "--card", "workload", "graph", "dim", "times", "train", "master-weights", "machine", "gpu", "gpus", "cpu", "samples", "tasks", "direct", "scheduler", "seed", "output")
	}
	if err := f.placeFlags.check(cmd); err != nil {
		return err
	}
	if f.samples < 1 {
		return usagef("--samples %d: want at least 1", f.samples)
	}
	return nil
}

// maxPolicy bounds a policy file; the checkpoints of pretraining, which hold the optimizer's
// state too, are read as policies.
const maxPolicy = 1 << 30

// loadPolicy reads a policy file, which gzip may have compressed, from stdin for "-", or the policy
// that the program carries.
func (c *console) loadPolicy(name string) (*sequential.Policy, error) {
	switch name {
	case builtIn:
		return pretrained.Policy()
	case "-":
		data, err := fsx.Read(c.in, stdin, maxPolicy)
		if err != nil {
			return nil, err
		}
		return sequential.Read(data, stdin)
	}
	data, err := fsx.ReadFile(name, maxPolicy)
	if err != nil {
		return nil, err
	}
	return sequential.Read(data, name)
}

// placed prepares the problem of f, the human expert's placement and the document on both.
func (c *console) placed(ctx context.Context, f *placeFlags, policy *sequential.Policy) (*plan.Problem, *plan.Outcome, *report.Placed, error) {
	p, expert, err := c.expert(ctx, f)
	if err != nil {
		return nil, nil, nil, err
	}
	w, err := sequential.NewFeatures(p)
	if err != nil {
		return nil, nil, nil, err
	}
	return p, expert, placedDocument(f, policy, p, expert, w), nil
}

// expert prepares the problem of f and places it as the human expert does.
func (c *console) expert(ctx context.Context, f *placeFlags) (*plan.Problem, *plan.Outcome, error) {
	l, m, err := c.load(&f.inputFlags)
	if err != nil {
		return nil, nil, err
	}
	tasks, err := plan.ParseTasks(f.tasks)
	switch {
	case err != nil:
		return nil, nil, usage(err)
	case !tasks.Has(plan.Place):
		return nil, nil, usagef("--tasks %s: a policy places; want place among them", tasks)
	}
	t, err := await(c, func() (*problem.Problem, error) {
		return problem.New(l.Source, m, problem.Options{Scheduler: problem.Scheduler(f.scheduler), Tasks: tasks})
	})
	if err != nil {
		return nil, nil, err
	}
	p := &t.Problem
	p.Seed = f.seed
	out, err := rules.Expert().Place(ctx, p)
	return p, out, err
}

// placedDocument is the document on p, of features w, with the human expert's row.
func placedDocument(f *placeFlags, policy *sequential.Policy, p *plan.Problem, expert *plan.Outcome, w *sequential.Features) *report.Placed {
	return &report.Placed{
		Format: report.PlacedFormat, Graph: report.IdentifyGraph(p.Graph), Machine: report.IdentifyMachine(p.Machine), Policy: inputName(f.policy),
		Distance: policy.Distance(w), Reach: policy.Limit(), Human: expert.Score.Value, HumanFits: expert.Score.Feasible(),
	}
}

func placedRow(method string, s plan.Score, human float64, evaluations int) report.PlacedRow {
	return report.PlacedRow{Method: method, StepTime: s.Value, Feasible: s.Feasible(), Reduction: 1 - s.Value/human, Evaluations: evaluations}
}

// place places by the policy as it is.
func (c *console) place(ctx context.Context, f *zeroShotFlags, policy *sequential.Policy) error {
	p, expert, err := c.expert(ctx, &f.placeFlags)
	if err != nil {
		return err
	}
	begin := c.clock()
	w, err := sequential.NewFeatures(p)
	if err != nil {
		return err
	}
	doc := placedDocument(&f.placeFlags, policy, p, expert, w)
	first, sample := "greedy", policy.ZeroShot
	if f.direct {
		first, sample = "first", policy.Direct
	}
	all, err := sample(ctx, w, f.samples)
	if err != nil {
		return err
	}
	best := sequential.Best(all)
	doc.Seconds, doc.Note = c.clock()-begin, w.Note()
	doc.Rows = append(doc.Rows, placedRow(first, all[0].Score, doc.Human, 1))
	if f.samples > 1 {
		doc.Rows = append(doc.Rows, placedRow(fmt.Sprintf("best of %d", f.samples), best.Score, doc.Human, len(all)))
	}
	if err := c.printPlaced(&f.placeFlags, p, doc, placement{"zero-shot", best.Decision, best.Score}); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return interrupted("interrupted: this is the best of the placements that were made until then")
	}
	return nil
}

// placedPlan returns the file of a decision; what it leaves open is the problem's.
func placedPlan(p *plan.Problem, method string, d plan.Decision) (*plan.File, error) {
	best := &plan.Plan{Graph: p.Graph.Hash(), Machine: p.Machine.Name, Method: method, Decision: p.Complete(d)}
	return best.File(p.Graph, p.Machine)
}

// placement is the best that a method came to.
type placement struct {
	method string
	plan.Decision
	score plan.Score
}

// printPlaced writes the plan and prints the document.
func (c *console) printPlaced(f *placeFlags, p *plan.Problem, doc *report.Placed, best placement) error {
	file, err := placedPlan(p, best.method, best.Decision)
	if err != nil {
		return err
	}
	if err := c.emit(f.output, file.Write, f.json, doc); err != nil {
		return err
	}
	if !best.score.Feasible() {
		return tooMuch(best.score)
	}
	return nil
}

// tooMuch is the error of a result that does not fit.
func tooMuch(s plan.Score) error {
	return fmt.Errorf("%w: the best plan found takes %v more memory than the devices have", problem.ErrInfeasible, s.Overflow)
}

// cardOf returns the transfer card of policy.
func cardOf(name string, policy *sequential.Policy) *report.Policy {
	k := policy.Card
	doc := &report.Policy{Format: report.PoliciesFormat, Policy: name, Weights: policy.Weights(), Trained: k.Trained, HeldOut: k.HeldOut,
		Steps: k.Steps, Samples: k.Samples, Graphs: k.Graphs, Reach: policy.Limit()}
	for _, r := range k.Results {
		doc.Results = append(doc.Results, report.PolicyResult(r))
	}
	return doc
}
