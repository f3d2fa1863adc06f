package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"

	"placer/graphsage"
	"placer/internal/words"
	"placer/nn"
	"placer/nn/gonet"
	"placer/ppo"
)

// Network says how the policy network is measured, at the sizes of GDP.
type Network struct {
	Nodes, Devices, Samples, Repeats int
	Workers                          int // goroutines of the CPU's side
	Seed                             uint64
}

// DefaultNetwork is a graph of 24,000 nodes on eight devices.
func DefaultNetwork() Network {
	return Network{Nodes: 24000, Devices: 8, Samples: 16, Repeats: 5, Workers: 2, Seed: 1}
}

// NetworkRates are the result of bench policy.
type NetworkRates struct {
	Format  string        `json:"format"`
	Nodes   int           `json:"nodes"`
	Samples int           `json:"samples"`
	Rates   []NetworkRate `json:"rates"`
	// Ratio is the second rate of steps over the first, Difference the largest
	// between their first logits, Gradient the norm of the difference of their first
	// gradients over that of the first; with a GPU only.
	Ratio      float64 `json:"ratio,omitempty"`
	Difference float64 `json:"logit_difference,omitempty"`
	Gradient   float64 `json:"gradient_difference,omitempty"`
}

// NetworkRate is nodes a second on one device.
type NetworkRate struct {
	Device  string  `json:"device"`
	Name    string  `json:"name"`
	Workers int     `json:"workers,omitempty"`
	Forward float64 `json:"forward_nodes_per_second"`
	Step    float64 `json:"step_nodes_per_second"` // forward, backward, update
}

// WriteText writes the figures for people.
func (r *NetworkRates) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%s, %s\n", words.Count(r.Nodes, "node", "nodes"), words.Count(r.Samples, "sample", "samples"))
	for _, x := range r.Rates {
		fmt.Fprintf(w, "%-5s %-24s forward %10.0f nodes/s   step %10.0f nodes/s\n", x.Device, x.Name, x.Forward, x.Step)
	}
	if r.Ratio > 0 {
		fmt.Fprintf(w, "ratio of steps %.1f, largest difference of a logit %.2g, of the gradient %.2g of its norm\n", r.Ratio, r.Difference, r.Gradient)
	}
	return nil
}

// Run measures the network on the CPU and, unless it is nil, on device d.
func (f *Network) Run(ctx context.Context, d nn.Device, host Host) (*NetworkRates, error) {
	if f.Nodes < 1 || f.Devices < 1 || f.Samples < 1 || f.Repeats < 1 || f.Workers < 1 {
		return nil, ConfigErrorf("--nodes, --devices, --samples, --repeats and --workers: want at least 1")
	}
	r := &NetworkRates{Format: "placer bench policy 1", Nodes: f.Nodes, Samples: f.Samples}
	first, err := f.rate(ctx, nil, nil, host)
	if err != nil {
		return nil, err
	}
	r.Rates = append(r.Rates, first.rate)
	if d == nil {
		return r, nil
	}
	second, err := f.rate(ctx, d, first.objective, host)
	if err != nil {
		return nil, err
	}
	r.Rates, r.Ratio = append(r.Rates, second.rate), second.rate.Step/first.rate.Step
	for i, v := range second.logits {
		r.Difference = max(r.Difference, float64(v-first.logits[i]), float64(first.logits[i]-v))
	}
	r.Gradient = apart(first.gradient, second.gradient)
	return r, nil
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

// networkRun is what a network came to: its rate, its first logits and gradient,
// and the objective of that gradient.
type networkRun struct {
	rate             NetworkRate
	logits, gradient []float32
	objective        *ppo.Objective
}

// rate measures the network on d, the CPU if it is nil. Without an objective
// o it samples one from its first logits.
func (f *Network) rate(ctx context.Context, d nn.Device, o *ppo.Objective, host Host) (run networkRun, err error) {
	r := rand.New(rand.NewPCG(f.Seed, 0x706f))
	b := networkBatch(r, f.Nodes)
	config := nn.Default()
	config.Workers, config.Device = f.Workers, d
	backend, err := nn.NewBackend(config)
	if err != nil {
		return run, err
	}
	rate := &run.rate
	*rate = NetworkRate{Device: "cpu", Name: backend.Name(), Workers: f.Workers}
	if d != nil {
		rate.Device, rate.Workers = "cuda", 0
	}
	net, err := gonet.New(gonet.Default(b.X.D, f.Devices), r, backend)
	if err != nil {
		return run, err
	}
	defer net.Close()
	out, err := net.Forward(b)
	if err = cmp.Or(err, ctx.Err()); err != nil { // a pass takes seconds, and knows no context
		return run, err
	}
	run.logits, run.objective = slices.Clone(out.Logits.V), o
	if o == nil {
		run.objective = networkObjective(r, f, out.Logits)
	}
	step := func() error {
		_, err := net.Backward(b, run.objective)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		_, err = net.Update(1e-4)
		return err
	}
	// Not timed: the graph is compiled, and the gradient is looked at.
	_, err = net.Backward(b, run.objective)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return run, err
	}
	for _, p := range net.Params().All() {
		run.gradient = append(run.gradient, p.Grad...)
	}
	if _, err := net.Update(1e-4); err != nil {
		return run, err
	}
	if err := cmp.Or(step(), ctx.Err()); err != nil { // once more: the weights are where they stay
		return run, err
	}
	if rate.Forward, err = f.nodesPerSecond(ctx, host, func() error { _, err := net.Forward(b); return err }); err != nil {
		return run, err
	}
	rate.Step, err = f.nodesPerSecond(ctx, host, step)
	return run, err
}

// nodesPerSecond is the rate of the median of the repeats of run.
func (f *Network) nodesPerSecond(ctx context.Context, host Host, run func() error) (float64, error) {
	var seconds []float64
	for range f.Repeats {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		start := host.Clock()
		if err := run(); err != nil {
			return 0, err
		}
		seconds = append(seconds, host.Clock()-start)
	}
	slices.Sort(seconds)
	return float64(f.Nodes) / max(seconds[len(seconds)/2], 1e-9), nil
}

// networkObjective samples as many placements as f asks for.
func networkObjective(r *rand.Rand, f *Network, logits nn.Mat) *ppo.Objective {
	o := &ppo.Objective{ClipEps: 0.2, Entropy: 0.05, ValueCost: 0.5}
	for k := range f.Samples {
		o.Actions, o.LogProb = append(o.Actions, make([]int32, f.Nodes)), append(o.LogProb, make([]float32, f.Nodes))
		o.Advantage, o.Return = append(o.Advantage, []float32{float32(k) - float32(f.Samples-1)/2}), append(o.Return, -1)
		ppo.Sample(logits, 1, r, o.Actions[k], o.LogProb[k])
	}
	return o
}

// networkBatch is a random graph: 64 features, edges to near nodes and a few far.
func networkBatch(r *rand.Rand, n int) *gonet.Batch {
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
