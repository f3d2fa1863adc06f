package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"placer/baselines/rules"
	"placer/internal/fsx"
	"placer/internal/report"
	"placer/internal/tfevents"
	"placer/internal/words"
	"placer/placer/policy/sequential"
	"placer/plan"
)

// tuneStateFile is the file of a fine-tuning's folder that it goes on from.
const tuneStateFile = "state.json"

// tunedPlanFile is the plan in a fine-tuning's folder.
const tunedPlanFile = "plan.json"

// finetuneFlags are the flags of the finetune command.
type finetuneFlags struct {
	placeFlags
	config sequential.TuneConfig
	out    string
	ppo    bool
	budget time.Duration
}

func (c *console) finetuneCommand() *cobra.Command {
	f := finetuneFlags{config: sequential.DefaultTune()}
	t := &f.config
	cmd := &cobra.Command{
		Use:   "finetune",
		Short: "Place a graph by a pretrained policy that first learns on it",
		Long: "finetune improves a pretrained policy on the graph at hand, by sampling placements and\n" +
			"simulating them, and keeps the best placement. The papers take fewer than 50 steps.\n" +
			"With --out, the folder holds the state after each step, the plan and TensorBoard's\n" +
			"event files, and the same command continues a run that was stopped or killed. Without\n" +
			"--budget the plan depends on the seed alone.",
		Example: "  placer finetune --workload gnmt8 --gpus 8 --steps 49 -o plan.json\n  placer finetune --graph model.onnx --train adam --gpus 4 --budget 1m --out runs/model",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			if f.ppo {
				if err := useless(cmd, "--ppo", "samples", "elite", "rate", "out"); err != nil {
					return err
				}
			}
			if f.budget < 0 {
				return usagef("--budget %v must not be negative", f.budget)
			}
			if err := t.Validate(); err != nil {
				return usage(err)
			}
			return c.finetune(cmd.Context(), &f)
		},
	}
	f.add(cmd)
	fl := cmd.Flags()
	fl.IntVar(&t.Steps, "steps", t.Steps, "rounds of samples")
	fl.IntVar(&t.Samples, "samples", t.Samples, "placements judged in a round on four devices; 0 chooses by the size of the graph")
	fl.IntVar(&t.Elite, "elite", t.Elite, "placements that a round learns from")
	fl.Float64Var(&t.Rate, "rate", t.Rate, "learning rate of the logits that belong to this graph")
	fl.IntVar(&t.Workers, "workers", 2, "samples that are made at once; the plan does not depend on it")
	fl.DurationVar(&f.budget, "budget", 0, "`TIME` to learn, over all resumptions: rounds have as many samples as it allows; 0 is no limit")
	fl.StringVar(&f.out, "out", "", "folder of the run; an existing one is continued")
	fl.BoolVar(&f.ppo, "ppo", false, "learn by PPO through the policy's network and an embedding of each unit, at most 49 steps, instead of by logits of the graph's own; without --samples, --elite, --rate and --out")
	return cmd
}

func (c *console) finetune(ctx context.Context, f *finetuneFlags) error {
	policy, err := c.loadPolicy(f.policy)
	if err != nil {
		return err
	}
	if f.ppo {
		return c.finetuneByPPO(ctx, f, policy)
	}
	if f.out != "" {
		folder, err := fsx.OpenFolder(f.out)
		if err != nil {
			return err
		}
		defer folder.Close()
	}
	p, expert, doc, err := c.placed(ctx, &f.placeFlags, policy)
	if err != nil {
		return err
	}
	t := sequential.Tuner{Policy: policy, Config: f.config}
	board, err := f.goOn(c, &t)
	if err != nil {
		return err
	}
	if board != nil {
		defer board.Close()
	}
	show := c.newProgress(plan.Budget{})
	t.Observe = func(x sequential.TuneStep, best plan.Score) error {
		show.line("%7.1f s  step %d of %d: %s by %s, mean %.4g ms, best so far %.4g ms", c.clock(), x.Step+1, f.config.Steps, words.Count(x.Samples, "sample", "samples"), x.Level, 1e3*x.Mean, 1e3*best.Value)
		if board == nil {
			return nil
		}
		return writeTuneStep(board, x, best)
	}
	begin := c.clock()
	p.Clock, p.Budget.Seconds = c.clock, f.budget.Seconds()
	o, err := t.Place(ctx, p)
	show.close()
	if errors.Is(err, sequential.ErrState) {
		return fmt.Errorf("%s: %w", filepath.Join(f.out, tuneStateFile), err)
	}
	if err != nil {
		return err
	}
	doc.Seconds = c.clock() - begin
	best := tuned(doc, t.Name(), o, expert)
	var unwritten error
	if f.out != "" {
		file, err := placedPlan(p, best.method, best.Decision)
		if err != nil {
			return err
		}
		unwritten = fsx.WriteFile(filepath.Join(f.out, tunedPlanFile), file.Write)
	}
	if err := errors.Join(unwritten, c.printPlaced(&f.placeFlags, p, doc, best)); err != nil {
		return err
	}
	switch {
	case ctx.Err() == nil:
		return nil
	case f.out != "":
		return interrupted("interrupted; run the same command to continue")
	}
	return interrupted("interrupted; this is the best so far")
}

// goOn makes t go on from the state in the run's folder, if there is one, and save its own
// there, and returns the file of TensorBoard's events; nil without a folder.
func (f *finetuneFlags) goOn(c *console, t *sequential.Tuner) (board *tfevents.File, err error) {
	if f.out == "" {
		return nil, nil
	}
	if t.From, err = readIfThere(filepath.Join(f.out, tuneStateFile), sequential.ReadTuneState); err != nil {
		return nil, err
	}
	t.Save = func(s *sequential.TuneState) error {
		return fsx.WriteFile(filepath.Join(f.out, tuneStateFile), s.Write)
	}
	first := 0
	if t.From != nil {
		first = t.From.Step
		c.say("going on from step %d", first)
	}
	return tfevents.Create(f.out, "finetune", first, c.clock)
}

// writeTuneStep writes what a step came to for TensorBoard.
func writeTuneStep(board *tfevents.File, x sequential.TuneStep, best plan.Score) error {
	return board.Write(int64(x.Step), tfevents.Scalar("finetune/mean_s", x.Mean), tfevents.Scalar("finetune/best_of_round_s", x.Best),
		tfevents.Scalar("finetune/best_s", best.Value), tfevents.Scalar("finetune/entropy", x.Entropy), tfevents.Scalar("finetune/samples", float64(x.Samples)))
}

// finetuneByPPO fine-tunes through the network.
func (c *console) finetuneByPPO(ctx context.Context, f *finetuneFlags, policy *sequential.Policy) error {
	p, expert, doc, err := c.placed(ctx, &f.placeFlags, policy)
	if err != nil {
		return err
	}
	t := sequential.PPOTuner{Policy: policy, Config: sequential.DefaultPPO()}
	t.Config.Steps, t.Config.Workers = min(f.config.Steps, t.Config.Steps), f.config.Workers
	show := c.newProgress(plan.Budget{})
	begin := c.clock()
	p.Clock, p.Budget.Seconds = func() float64 { return c.clock() - begin }, f.budget.Seconds()
	p.Report = func(x plan.Progress) {
		show.line("%7.1f s  %s, best so far %.4g ms", c.clock(), words.Count(x.Evaluations, "placement", "placements"), 1e3*x.Best.Value)
	}
	o, err := t.Place(ctx, p)
	show.close()
	if err != nil {
		return err
	}
	doc.Seconds, doc.Note = c.clock()-begin, strings.Join(o.Notes, "; ")
	if err := c.printPlaced(&f.placeFlags, p, doc, tuned(doc, t.Name(), o, expert)); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return interrupted("interrupted; this is the best so far")
	}
	return nil
}

// tuned adds what a method came to, o, to the document, and returns the plan: that, or the human
// expert's placement where it is better.
func tuned(doc *report.Placed, method string, o, expert *plan.Outcome) placement {
	doc.Rows = append(doc.Rows, placedRow(method, o.Score, doc.Human, o.Evaluations))
	if !expert.Score.Better(o.Score) {
		return placement{method, o.Decision, o.Score}
	}
	note := "the plan is the human expert's, which no sample is better than"
	if doc.Note != "" {
		note = doc.Note + "; " + note
	}
	doc.Note = note
	return placement{rules.Expert().Name(), expert.Decision, expert.Score}
}
