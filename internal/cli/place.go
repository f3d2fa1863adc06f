package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"placer/baselines/human"
	"placer/internal/fsx"
	"placer/placer"
	"placer/placer/pretrained"
	"placer/placer/transfer"
	"placer/plan"
	"placer/report"
)

// builtIn names the policy that the program carries.
const builtIn = "built-in"

// placeFlags are the flags of place and finetune.
type placeFlags struct {
	graph     graphFlags
	machine   machineFlags
	policy    string
	scheduler string
	output    string
	seed      uint64
	json      bool
}

func (f *placeFlags) add(cmd *cobra.Command) {
	f.graph.add(cmd)
	f.machine.add(cmd)
	cmd.Flags().StringVar(&f.policy, "policy", builtIn, "policy file, or "+builtIn)
	cmd.Flags().StringVar(&f.scheduler, "scheduler", criticalPath, "order in which a device runs its ready ops: critical-path or fifo")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "write the best plan to this file; - writes it to stdout instead of the table")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed of every random choice")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
}

func (f *placeFlags) check(cmd *cobra.Command) error {
	if err := f.graph.check(); err != nil {
		return err
	}
	if err := f.machine.check(cmd); err != nil {
		return err
	}
	switch {
	case f.graph.file == "-" && f.machine.file == "-":
		return usagef("graph and machine cannot both come from stdin")
	case f.json && f.output == "-":
		return usagef("--json and -o - both want stdout")
	}
	return writable(f.output)
}

func (c *console) placeCommand() *cobra.Command {
	var f placeFlags
	var samples int
	var card bool
	cmd := &cobra.Command{
		Use:   "place",
		Short: "Place a graph by a pretrained policy as it is",
		Long: "place lets a pretrained policy decide a graph that it need not have seen: forward\n" +
			"passes only, no search. It prints the greedy placement and the best of the samples\n" +
			"beside the human expert's, and says when the graph lies beyond what the policy was\n" +
			"trained and measured on.",
		Example: "  placer place --workload gnmt8 --gpus 8 -o plan.json\n  placer place --graph model.onnx --train adam --gpus 4 --samples 64\n  placer place --card",
		RunE: func(cmd *cobra.Command, _ []string) error {
			policy, err := loadPolicy(f.policy)
			if err != nil {
				return err
			}
			if card {
				return c.print(f.json, cardOf(f.policy, policy))
			}
			if err := f.check(cmd); err != nil {
				return err
			}
			if samples < 1 {
				return usagef("--samples %d: want at least 1", samples)
			}
			return c.place(cmd.Context(), &f, policy, samples)
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&samples, "samples", transfer.DefaultSamples, "placements to sample, the greedy one among them")
	cmd.Flags().BoolVar(&card, "card", false, "print what the policy was trained on and how far it carries, and place nothing")
	return cmd
}

// loadPolicy reads a policy file, or the policy that the program carries.
func loadPolicy(name string) (*transfer.Policy, error) {
	if name == builtIn {
		return pretrained.Policy()
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return transfer.Read(data, name)
}

// placed prepares the problem of f and the document on it, with the human
// expert's row.
func (c *console) placed(ctx context.Context, f *placeFlags, policy *transfer.Policy) (*plan.Problem, *report.Placed, error) {
	l, m, err := c.load(&f.graph, &f.machine)
	if err != nil {
		return nil, nil, err
	}
	t, _, err := task(l, m, judging{scheduler: f.scheduler})
	if err != nil {
		return nil, nil, err
	}
	p := problemOf(t, f.seed)
	expert, err := human.Placer{}.Place(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	w, err := transfer.NewView(p)
	if err != nil {
		return nil, nil, err
	}
	return p, &report.Placed{
		Format: report.PlacedFormat, Graph: report.IdentifyGraph(l.Graph), Machine: report.IdentifyMachine(m), Policy: f.policy,
		Distance: policy.Reach.Distance(w), Reach: policy.Reach.Limit, Human: expert.Score.Seconds, HumanFits: expert.Score.Feasible(),
	}, nil
}

// problemOf returns the problem of t.
func problemOf(t *placer.Task, seed uint64) *plan.Problem {
	return &plan.Problem{Graph: t.Graph, Machine: t.Machine, Units: t.Units, Priority: t.Priority, Evaluator: t.Evaluator, Seed: seed}
}

func placedRow(method string, s plan.Score, human float64, evaluations int) report.PlacedRow {
	return report.PlacedRow{Method: method, StepTime: s.Seconds, Feasible: s.Feasible(), Reduction: 1 - s.Seconds/human, Evaluations: evaluations}
}

func (c *console) place(ctx context.Context, f *placeFlags, policy *transfer.Policy, samples int) error {
	p, doc, err := c.placed(ctx, f, policy)
	if err != nil {
		return err
	}
	begin := c.clock()
	w, err := transfer.NewView(p)
	if err != nil {
		return err
	}
	all, err := policy.ZeroShot(ctx, w, samples)
	if err != nil {
		return err
	}
	best := transfer.Best(all)
	doc.Seconds = c.clock() - begin
	doc.Rows = append(doc.Rows, placedRow("greedy", all[0].Score, doc.Human, 1))
	if samples > 1 {
		doc.Rows = append(doc.Rows, placedRow(fmt.Sprintf("best of %d", samples), best.Score, doc.Human, samples))
	}
	return c.printPlaced(f, p, doc, "zero-shot", best.Device, best.Score)
}

// placedPlan returns the file of a placement.
func placedPlan(p *plan.Problem, method string, device []uint8) (*plan.File, error) {
	best := &plan.Plan{Graph: p.Graph.Hash(), Machine: p.Machine.Name, Method: method, Device: device, Priority: p.Priority}
	return best.File(p.Graph, p.Machine)
}

// printPlaced writes the plan and prints the document.
func (c *console) printPlaced(f *placeFlags, p *plan.Problem, doc *report.Placed, method string, device []uint8, score plan.Score) error {
	if f.output != "" {
		file, err := placedPlan(p, method, device)
		if err != nil {
			return err
		}
		if f.output == "-" {
			err = file.Write(c.out)
		} else {
			err = fsx.WriteFile(f.output, file.Write)
		}
		if err != nil {
			return err
		}
	}
	if f.output != "-" {
		if err := c.print(f.json, doc); err != nil {
			return err
		}
	}
	if !score.Feasible() {
		return tooMuch(score)
	}
	return nil
}

// tooMuch is the error of a result that does not fit.
func tooMuch(s plan.Score) error {
	return fmt.Errorf("%w: the best plan found takes %v more memory than the devices have", errInfeasible, s.Overflow)
}

// cardOf returns the transfer card of policy.
func cardOf(name string, policy *transfer.Policy) *report.Policy {
	k := policy.Card
	doc := &report.Policy{Format: report.PoliciesFormat, Policy: name, Weights: policy.Weights(), Trained: k.Trained, HeldOut: k.HeldOut,
		Steps: k.Steps, Samples: k.Samples, Graphs: k.Graphs, Reach: policy.Reach.Limit}
	for _, r := range k.Results {
		doc.Results = append(doc.Results, report.PolicyResult(r))
	}
	return doc
}
