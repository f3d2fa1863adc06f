package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"placer/internal/report"
	"placer/placer/explain"
)

// moreEvaluations is the budget of the searches behind explain's row of one device more.
const moreEvaluations = 300

func (c *console) explainCommand() *cobra.Command {
	var in inputFlags
	var planFile, contention string
	var evaluations int
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Say where a plan's step time goes, what limits it, and what would help",
		Long: "explain divides the critical path of a plan's step by layer of the model (or module),\n" +
			"by kind of op and by transfer; the parts sum to the step time. It names the device or\n" +
			"link that limits the step and the work that could end later, and simulates the plan\n" +
			"again on machines that differ in one figure. The row of one device more is a short\n" +
			"search that starts from the plan.",
		Example: "  placer explain --workload gnmt8 --gpus 8 --plan runs/gnmt8-p100-1/plan.json",
	}
	in.add(cmd.Flags())
	cmd.Flags().StringVar(&planFile, "plan", "", "plan `FILE`; - reads stdin")
	cmd.Flags().StringVar(&contention, "contention", "", "how transfers share links: fifo, fair-share or none (default the file's)")
	cmd.Flags().IntVar(&evaluations, "evaluations", moreEvaluations, "evaluations of the search for one device more; 0 leaves it out")
	c.printing(cmd, func(cmd *cobra.Command) (document, error) {
		if err := in.check(cmd, planFile); err != nil {
			return nil, err
		}
		switch {
		case planFile == "":
			return nil, usagef("name a plan by --plan")
		case evaluations < 0:
			return nil, usagef("--evaluations %d: want at least 0", evaluations)
		}
		l, m, err := c.loadUnder(&in, contention)
		if err != nil {
			return nil, err
		}
		p, err := c.planOf(planFile, &l, m)
		if err != nil {
			return nil, err
		}
		x, err := explain.Explain(cmd.Context(), &explain.Case{Source: l.Source, Machine: m, Plan: p, Contention: contention}, evaluations)
		if err != nil {
			return nil, err
		}
		return report.Explain(l.Graph, m, p, x), nil
	})
	return cmd
}

func (c *console) diffCommand() *cobra.Command {
	var in inputFlags
	var contention string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Say what moved between two plans, and the gain of each move",
		Long: "diff compares two plans of one graph on one machine: which ops moved, with how many\n" +
			"bytes, from which device to which, and the gain of each group of moves. The groups are\n" +
			"moved one after another, the most helpful first, and the plan is simulated after each\n" +
			"move; the gains sum to the difference of the step times.",
		Example: "  placer diff human.json runs/gnmt8-p100-1/plan.json --workload gnmt8 --gpus 8",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef("want two plan files, A and B; got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := in.check(cmd, args...); err != nil {
				return err
			}
			l, m, err := c.loadUnder(&in, contention)
			if err != nil {
				return err
			}
			of := l
			a, err := c.planOf(args[0], &l, m)
			if err != nil {
				return err
			}
			b, err := c.planOf(args[1], &of, m)
			if err != nil {
				return err
			}
			if l.Hash() != of.Hash() {
				return fmt.Errorf("%s and %s recompute or offload other layers: what one runs the other does not", args[0], args[1])
			}
			x, err := explain.Diff(cmd.Context(), &explain.Case{Source: l.Source, Machine: m, Plan: a, Contention: contention}, b)
			if err != nil {
				return err
			}
			return c.print(asJSON, report.Diff(l.Graph, m, a.Method, b.Method, x))
		},
	}
	in.add(cmd.Flags())
	cmd.Flags().StringVar(&contention, "contention", "", "how transfers share links: fifo, fair-share or none (default the file's)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
