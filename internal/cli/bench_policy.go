package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/spf13/cobra"

	"placer/gonet"
	"placer/graphsage"
	"placer/internal/fsx"
	"placer/nn"
	"placer/ppo"
	"placer/report"
)

// benchPolicyFlags are the flags of bench policy.
type benchPolicyFlags struct {
	device                                    policyDevice
	libraries                                 libraryFlags
	nodes, devices, samples, repeats, workers int
	seed                                      uint64
	out                                       string
	json                                      bool
}

func (c *console) benchPolicyCommand() *cobra.Command {
	var f benchPolicyFlags
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Measure how fast the policy network learns, on the CPU and on a GPU",
		Long: "policy runs the network of GO at the sizes of GDP on a random graph: forward, and a\n" +
			"gradient of PPO's objective with an optimiser step. It prints nodes a second, the\n" +
			"median of the repeats; with --policy-device cuda of CPU and GPU, their ratio, and by\n" +
			"how much their logits and gradients differ.",
		Example: "  placer bench policy --policy-device cuda --nodes 24000",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.benchPolicy(cmd.Context(), &f) },
	}
	f.device.add(cmd)
	f.libraries.add(cmd)
	cmd.Flags().IntVar(&f.nodes, "nodes", 24000, "nodes of the graph")
	cmd.Flags().IntVar(&f.devices, "devices", 8, "devices to choose from")
	cmd.Flags().IntVar(&f.samples, "samples", 16, "sampled placements in the objective")
	cmd.Flags().IntVar(&f.repeats, "repeats", 5, "timed repeats, of which the median counts")
	cmd.Flags().IntVar(&f.workers, "workers", 2, "goroutines of the CPU's side")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed of graph and weights")
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "write the figures there too (JSON)")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// policyRates are the result of bench policy.
type policyRates struct {
	Format  string       `json:"format"`
	Nodes   int          `json:"nodes"`
	Samples int          `json:"samples"`
	Rates   []policyRate `json:"rates"`
	// Ratio is the second rate of steps over the first, Difference the largest
	// between their first logits, Gradient the norm of the difference of their first
	// gradients over that of the first; with a GPU only.
	Ratio      float64 `json:"ratio,omitempty"`
	Difference float64 `json:"logit_difference,omitempty"`
	Gradient   float64 `json:"gradient_difference,omitempty"`
}

// policyRate is nodes a second on one device.
type policyRate struct {
	Device  string  `json:"device"`
	Name    string  `json:"name"`
	Workers int     `json:"workers,omitempty"`
	Forward float64 `json:"forward_nodes_per_second"`
	Step    float64 `json:"step_nodes_per_second"` // forward, backward, update
}

// WriteText is as document says.
func (r *policyRates) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%d nodes, %d samples\n", r.Nodes, r.Samples)
	for _, x := range r.Rates {
		fmt.Fprintf(w, "%-5s %-24s forward %10.0f nodes/s   step %10.0f nodes/s\n", x.Device, x.Name, x.Forward, x.Step)
	}
	if r.Ratio > 0 {
		fmt.Fprintf(w, "ratio of steps %.1f, largest difference of a logit %.2g, of the gradient %.2g of its norm\n", r.Ratio, r.Difference, r.Gradient)
	}
	return nil
}

func (c *console) benchPolicy(ctx context.Context, f *benchPolicyFlags) error {
	if err := f.device.check(); err != nil {
		return err
	}
	if f.nodes < 1 || f.devices < 1 || f.samples < 1 || f.repeats < 1 || f.workers < 1 {
		return usagef("--nodes, --devices, --samples, --repeats and --workers: want at least 1")
	}
	device, err := c.openPolicyDevice(&f.device, f.libraries)
	if err != nil {
		return err
	}
	r := &policyRates{Format: "placer bench policy 1", Nodes: f.nodes, Samples: f.samples}
	first, err := c.policyRate(ctx, f, nil, nil)
	if err != nil {
		return err
	}
	r.Rates = append(r.Rates, first.rate)
	if device != nil {
		defer device.Close()
		second, err := c.policyRate(ctx, f, device, first.objective)
		if err != nil {
			return err
		}
		r.Rates, r.Ratio = append(r.Rates, second.rate), second.rate.Step/first.rate.Step
		for i, v := range second.logits {
			r.Difference = max(r.Difference, float64(v-first.logits[i]), float64(first.logits[i]-v))
		}
		r.Gradient = apart(first.gradient, second.gradient)
	}
	if f.out != "" {
		if err := fsx.WriteFile(f.out, func(w io.Writer) error { return report.WriteJSON(w, r) }); err != nil {
			return err
		}
	}
	return c.print(f.json, r)
}

// apart returns the norm of y - x over that of x.
func apart(x, y []float32) float64 {
	var difference, size float64
	for i, v := range x {
		w := float64(y[i]) - float64(v)
		difference, size = difference+w*w, size+float64(v)*float64(v)
	}
	return math.Sqrt(difference / max(size, 1e-30))
}

// policyRun is what a network came to: its rate, its first logits and gradient,
// and the objective of that gradient.
type policyRun struct {
	rate             policyRate
	logits, gradient []float32
	objective        *ppo.Objective
}

// policyRate measures the network on d, the CPU if it is nil. Without an objective
// o it samples one from its first logits.
func (c *console) policyRate(ctx context.Context, f *benchPolicyFlags, d nn.Device, o *ppo.Objective) (run policyRun, err error) {
	r := rand.New(rand.NewPCG(f.seed, 0x706f))
	b := policyBatch(r, f.nodes)
	config := nn.Default()
	config.Workers, config.Device = f.workers, d
	backend, err := nn.NewBackend(config)
	if err != nil {
		return run, err
	}
	rate := &run.rate
	*rate = policyRate{Device: onCPU, Name: backend.Name(), Workers: f.workers}
	if d != nil {
		rate.Device, rate.Workers = onCUDA, 0
	}
	net, err := gonet.New(gonet.Default(b.X.D, f.devices), r, backend)
	if err != nil {
		return run, err
	}
	defer net.Close()
	out, err := net.Forward(b)
	if err != nil {
		return run, err
	}
	run.logits, run.objective = slices.Clone(out.Logits.V), o
	if o == nil {
		run.objective = policyObjective(r, f, out.Logits)
	}
	step := func() error {
		if _, err := net.Backward(b, run.objective); err != nil {
			return err
		}
		_, err := net.Update(1e-4)
		return err
	}
	// Not timed: the graph is compiled, and the gradient is looked at.
	if _, err := net.Backward(b, run.objective); err != nil {
		return run, err
	}
	for _, p := range net.Params().All() {
		run.gradient = append(run.gradient, p.Grad...)
	}
	if _, err := net.Update(1e-4); err != nil {
		return run, err
	}
	if err := step(); err != nil { // once more: the weights are where they stay
		return run, err
	}
	for _, x := range []struct {
		rate *float64
		run  func() error
	}{{&rate.Forward, func() error { _, err := net.Forward(b); return err }}, {&rate.Step, step}} {
		var seconds []float64
		for range f.repeats {
			if err := ctx.Err(); err != nil {
				return run, err
			}
			start := c.clock()
			if err := x.run(); err != nil {
				return run, err
			}
			seconds = append(seconds, c.clock()-start)
		}
		slices.Sort(seconds)
		*x.rate = float64(f.nodes) / max(seconds[len(seconds)/2], 1e-9)
	}
	return run, nil
}

// policyObjective samples as many placements as f asks for.
func policyObjective(r *rand.Rand, f *benchPolicyFlags, logits nn.Mat) *ppo.Objective {
	o := &ppo.Objective{ClipEps: 0.2, Entropy: 0.05, ValueCost: 0.5}
	for k := range f.samples {
		o.Actions, o.LogProb = append(o.Actions, make([]int32, f.nodes)), append(o.LogProb, make([]float32, f.nodes))
		o.Advantage, o.Return = append(o.Advantage, []float32{float32(k) - float32(f.samples-1)/2}), append(o.Return, -1)
		ppo.Sample(logits, 1, r, o.Actions[k], o.LogProb[k])
	}
	return o
}

// policyBatch is a random graph: 64 features, edges to near nodes and a few far.
func policyBatch(r *rand.Rand, n int) *gonet.Batch {
	b := &gonet.Batch{X: nn.NewMat(n, 64), Neighbours: &graphsage.Neighbours{Start: []int32{0}}}
	for i := range b.X.V {
		b.X.V[i] = float32(r.NormFloat64())
	}
	for v := range n {
		for _, u := range []int{v - 2, v - 1, v + 1, v + 2, r.IntN(n)} {
			if u >= 0 && u < n && u != v {
				b.Neighbours.Index = append(b.Neighbours.Index, int32(u))
			}
		}
		b.Neighbours.Start = append(b.Neighbours.Start, int32(len(b.Neighbours.Index)))
	}
	return b
}
