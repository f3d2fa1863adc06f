package robust

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"placer/graph"
	"placer/graph/fuse"
	"placer/hw"
	"placer/internal/faults"
	"placer/internal/parallel"
	"placer/plan"
	"placer/sim"
	"placer/units"
)

// Config says what machines a plan is judged on.
type Config struct {
	// Quantile of the step times over the machines, from 0 to 1: 0.95 for p95.
	Quantile float64
	// Machines is how many perturbed machines there are.
	Machines int
	// Error is the mean deviation of a predicted time, 0.076 for 7.6%.
	Error float64
	Seed  uint64
}

// Default is p95 over 50 machines of an error to be filled in.
func Default() Config { return Config{Quantile: 0.95, Machines: 50, Error: 0.1, Seed: 1} }

// Parse reads "p95" into the default with that quantile.
func Parse(s string) (Config, error) {
	c := Default()
	digits, ok := strings.CutPrefix(s, "p")
	n, err := strconv.ParseFloat(digits, 64)
	if !ok || err != nil || !(n >= 50 && n <= 99.9) {
		return c, fmt.Errorf("robust %q: want p50 to p99.9, as p95", s)
	}
	c.Quantile = n / 100
	return c, nil
}

// Validate reports every fault.
func (c Config) Validate() error {
	var errs faults.List
	errs.If(!(c.Quantile >= 0.5 && c.Quantile < 1), "quantile: %v, want 0.5 to below 1", c.Quantile)
	errs.If(c.Machines < 1, "machines: %d, want at least 1", c.Machines)
	errs.If(!(c.Error >= 0 && c.Error < 1), "error: %v, want 0 to below 1", c.Error)
	return errors.Join(errs...)
}

// Model predicts the steps of a graph on a machine.
type Model struct {
	Graph   *graph.Graph
	Machine *hw.Machine
	Cost    sim.CostModel
	How     sim.Config
}

// Evaluator judges plans by a quantile of their steps on perturbed machines. It implements
// plan.Evaluator.
type Evaluator struct {
	of      *sim.Simulator
	machine []*sim.Simulator
	least   []float64 // by machine: of what a step is made of takes so many times as long as predicted, or longer
	c       Config
	values  []float64
}

// New returns the evaluator of x's graph on machines that deviate from its machine. On each, every device
// has a factor for each class of ops, and every link one for its bandwidth, drawn from a
// log-normal distribution of median 1 whose mean absolute deviation is c.Error to first
// order (sigma = error*sqrt(pi/2)). Every factor has one value in each of c.Machines strata of
// equal probability (Latin hypercube sampling: McKay, Beckman and Conover, 1979), so that a
// quantile of few machines is near that of many.
func New(x Model, c Config) (*Evaluator, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	e := &Evaluator{c: c, values: make([]float64, c.Machines)}
	var err error
	if e.of, err = sim.New(x.Graph, x.Machine, x.Cost, x.How); err != nil {
		return nil, err
	}
	draws := stratified(c, dimensions(x.Machine))
	for k := range c.Machines {
		s, err := x.off(draws[k])
		if err != nil {
			return nil, err
		}
		e.machine = append(e.machine, s)
		e.least = append(e.least, least(draws[k], x.Machine.NumDevices()*graph.NumClasses))
	}
	return e, nil
}

// least returns how many times as long, at least, ops and transfers take on a machine that is
// off by factors, the first ops of these times, the others bandwidths.
func least(factor []float64, ops int) float64 {
	low := 1.0 // latencies are as predicted
	for j, f := range factor {
		if j >= ops {
			f = 1 / f
		}
		low = min(low, f)
	}
	return low
}

// off returns the simulator of a machine that is off by factors, those of the classes of
// each device first, then those of the links.
func (x *Model) off(factor []float64) (*sim.Simulator, error) {
	off := &deviating{CostModel: x.Cost, g: x.Graph, factor: make([][graph.NumClasses]float64, x.Machine.NumDevices())}
	for d := range off.factor {
		factor = factor[copy(off.factor[d][:], factor):]
	}
	m := *x.Machine
	m.Links = slices.Clone(m.Links)
	for l := range m.Links {
		m.Links[l].Bandwidth *= units.BytesPerSecond(factor[l])
	}
	if kernels, ok := x.Cost.(sim.KernelCostModel); ok {
		return sim.New(x.Graph, &m, &deviatingKernels{off, kernels}, x.How)
	}
	return sim.New(x.Graph, &m, off, x.How)
}

// Quantile returns the quantile q of steps: the lowest that at least that share does not exceed.
func Quantile(steps []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(steps))
	return sorted[at(q, len(sorted))]
}

// deviating are op times that are off by a factor for each device and class.
type deviating struct {
	sim.CostModel
	g      *graph.Graph
	factor [][graph.NumClasses]float64
}

func (x *deviating) off(op graph.OpID, d int) float64 { return x.factor[d][x.g.Op(op).Kind.Class()] }

// OpSeconds implements sim.CostModel.
func (x *deviating) OpSeconds(op graph.OpID, d int) units.Seconds {
	return x.CostModel.OpSeconds(op, d) * units.Seconds(x.off(op, d))
}

// deviatingKernels are those of a model that knows parts of kernels.
type deviatingKernels struct {
	*deviating
	of sim.KernelCostModel
}

// Parts implements sim.KernelCostModel.
func (x *deviatingKernels) Parts(op graph.OpID, d int) fuse.Parts {
	p, f := x.of.Parts(op, d), x.off(op, d)
	return fuse.Parts{Compute: p.Compute * units.Seconds(f), PerByte: p.PerByte * f, Launch: p.Launch * units.Seconds(f)}
}

// Evaluate implements plan.Evaluator: the quantile by the first three moments of the steps'
// logarithms, which few machines settle better than an order statistic of theirs; bytes do not depend on times much, and the largest overflow counts.
func (e *Evaluator) Evaluate(d plan.Decision) (s plan.Score) {
	for k, m := range e.machine {
		x := m.Evaluate(d)
		e.values[k] = x.Value
		s.Overflow = max(s.Overflow, x.Overflow)
	}
	s.Value = fitted(e.values, e.c.Quantile)
	return s
}

// moments are those of the logarithms of steps.
type moments struct{ mean, deviation, skew float64 }

// momentsOf returns the moments of the logarithms of steps, the skewness at most mostSkew either
// way: beyond that the expansion of the quantile does not hold.
func momentsOf(steps []float64) (m moments) {
	n := float64(len(steps))
	for _, x := range steps {
		m.mean += math.Log(x) / n
	}
	square, cube := 0.0, 0.0
	for _, x := range steps {
		d := math.Log(x) - m.mean
		square += d * d / n
		cube += d * d * d / n
	}
	if m.deviation = math.Sqrt(square); m.deviation > 0 {
		m.skew = min(max(cube/(square*m.deviation), -mostSkew), mostSkew)
	}
	return m
}

const mostSkew = 1

// above returns by how many deviations the quantile q is above the mean, by Cornish and Fisher's
// expansion to the third moment (1937): a step is the longest of several paths, whose
// logarithms lean to the right. It is never below the mean.
func (m moments) above(q float64) float64 {
	return max(0, normal(q)+leaning(q)*m.skew)
}

// leaning is what the skewness counts in the quantile q.
func leaning(q float64) float64 { return (normal(q)*normal(q) - 1) / 6 }

// fitted returns the quantile q of a distribution near the log-normal one that has the first three
// moments of the logarithms of steps.
func fitted(steps []float64, q float64) float64 {
	m := momentsOf(steps)
	return math.Exp(m.mean + m.above(q)*m.deviation)
}

// normal returns the quantile q of the normal distribution.
func normal(q float64) float64 { return math.Sqrt2 * math.Erfinv(2*q-1) }

// at is the index of a quantile among n sorted values: the lowest that at least that share does not
// exceed.
func at(quantile float64, n int) int {
	return min(n-1, max(0, int(math.Ceil(quantile*float64(n)-1e-9))-1))
}

// Floor returns a lower bound of what Evaluate returns, from bound, one of steps on the machine
// as it is: on each machine all that a step is made of takes at least as many times as long as
// what is shortened most there. It costs nothing and is some tenths below Bound.
func (e *Evaluator) Floor(bound float64) float64 {
	sum := 0.0
	for _, f := range e.least {
		sum += math.Log(f)
	}
	return bound * math.Exp(sum/float64(len(e.least)))
}

// Bound returns a lower bound of what Evaluate returns, of plans with fusion or without: the mean
// of the logarithms of the machines' own bounds, each of which is below its step; the quantile
// is not below the median. So many workers prove them side by side, each some seconds on large
// graphs. When ctx ends, a machine that is left has what Floor says of asIs, which is a bound of
// steps on the machine as it is.
func (e *Evaluator) Bound(ctx context.Context, fused bool, asIs float64, workers int) float64 {
	bounds := make([]float64, len(e.machine))
	var next atomic.Int64
	var wait parallel.Group
	for range min(max(1, workers), len(bounds)) {
		wait.Go(func() {
			for {
				k := int(next.Add(1)) - 1
				if k >= len(bounds) {
					return
				}
				bounds[k] = asIs * e.least[k]
				switch m := e.machine[k]; {
				case ctx.Err() != nil:
				case fused:
					bounds[k] = max(bounds[k], float64(m.FusedLowerBound().Seconds))
				default:
					bounds[k] = max(bounds[k], float64(m.LowerBound(ctx).Seconds))
				}
			}
		})
	}
	wait.Wait()
	sum := 0.0
	for _, b := range bounds {
		sum += math.Log(b)
	}
	return math.Exp(sum / float64(len(bounds)))
}

// Steps returns the step of d on every machine, ascending.
func (e *Evaluator) Steps(d plan.Decision) []float64 {
	e.Evaluate(d)
	return slices.Sorted(slices.Values(e.values))
}

// Clone implements plan.Evaluator.
func (e *Evaluator) Clone() plan.Evaluator {
	c := &Evaluator{of: e.of, least: e.least, c: e.c, values: make([]float64, len(e.values))}
	for _, m := range e.machine {
		c.machine = append(c.machine, m.Clone().(*sim.Simulator))
	}
	return c
}

// OpSeconds implements plan.Evaluator: the times as predicted.
func (e *Evaluator) OpSeconds(d int) []float64 { return e.of.OpSeconds(d) }
