package features

import (
	"fmt"
	"math"
	"math/rand/v2"

	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
)

// Version changes whenever a column changes its meaning or place; checkpoints
// carry it.
const Version = 1

// Config chooses the optional columns.
type Config struct {
	// Harmonics is the number of cosine columns of a unit's place in the order and
	// of its variable's place among the variables. The decision network has no
	// positional encoding (GO, section 4.2); these describe the graph, not the
	// sequence.
	Harmonics int
	// Identity is the number of random columns that tell units apart which are
	// alike in all other columns. They carry no knowledge to other graphs, so they
	// belong to training on one graph only.
	Identity int
}

// Default returns the columns of a policy that transfers.
func Default() Config { return Config{Harmonics: 6} }

// Validate reports the first fault.
func (c Config) Validate() error {
	if c.Harmonics < 0 || c.Harmonics > 32 || c.Identity < 0 || c.Identity > 256 {
		return fmt.Errorf("features: harmonics %d must be 0 to 32 and identity %d 0 to 256", c.Harmonics, c.Identity)
	}
	return nil
}

// Table is one row per unit.
type Table struct {
	Names []string  // [F]
	X     []float32 // [U,F], row-major
}

// Row returns the columns of unit u.
func (t *Table) Row(u int) []float32 { f := len(t.Names); return t.X[u*f : u*f+f] }

// NumColumns returns F for c.
func (c Config) NumColumns() int { return len(c.names()) }

// names lists the columns in order.
func (c Config) names() []string {
	n := []string{
		"time_share", "time_log", "time_per_device", "flops_log", "bytes_log", "params_log", "resident_log", "resident_of_memory", "out_log", "in_log",
		"out_time_share", "in_time_share", "ops_log", "in_degree", "out_degree",
		"top_min", "top_mean", "bottom_max", "bottom_mean", "slack", "order",
		"forward", "backward", "update", "variable",
		"chain_place", "chain_length", "variable_order",
		"devices", "devices_inverse", "width", "units_log", "bandwidth_log",
	}
	for d := range 4 {
		n = append(n, fmt.Sprintf("shape_%d", d))
	}
	for k := range graph.NumClasses {
		n = append(n, "class_"+graph.Class(k).String())
	}
	for k := range c.Harmonics {
		n = append(n, fmt.Sprintf("order_cos_%d", k+1))
	}
	for k := range c.Harmonics {
		n = append(n, fmt.Sprintf("variable_cos_%d", k+1))
	}
	for k := range c.Identity {
		n = append(n, fmt.Sprintf("identity_%d", k))
	}
	return n
}

// Build computes the columns of the units of p, each of which lies in one unit of
// chain, for ops that take seconds, [N], on the machine's first device. rng is
// read for the Identity columns only.
func Build(g *graph.Graph, p, chain *unit.Partition, seconds []float64, m *hw.Machine, c Config, rng *rand.Rand) *Table {
	if len(seconds) != g.NumOps() {
		panic(fmt.Sprintf("features: %d times for %d ops", len(seconds), g.NumOps()))
	}
	s := summarise(g, p, chain, seconds)
	t := &Table{Names: c.names()}
	units := p.NumUnits()
	t.X = make([]float32, 0, units*len(t.Names))
	log := func(x, scale float64) float64 { return math.Log1p(x*scale) / 4 }
	devices := float64(m.NumDevices())
	var bandwidth float64
	if m.NumDevices() > 1 {
		_, b := m.Transfer(0, 1)
		bandwidth = float64(b)
	}
	perDevice := s.total / devices
	for u := range units {
		a := &s.rows[u]
		weight := math.Max(a.seconds, 1e-12)
		row := []float64{
			a.seconds / s.total * float64(units) / 4, log(a.seconds, 1e6) / 2, math.Min(a.seconds/perDevice*2, 4), log(a.flops, 1e-6), log(a.bytes, 1e-3), log(a.params, 1e-3), log(a.resident, 1e-3),
			math.Min(4, a.resident/float64(m.Devices[0].Memory)*8), log(a.outBytes, 1e-3), log(a.inBytes, 1e-3),
			math.Min(4, ratio(a.outBytes, bandwidth)/weight), math.Min(4, ratio(a.inBytes, bandwidth)/weight), log(float64(a.ops), 1), log(float64(a.in), 1), log(float64(a.out), 1),
			2 * a.topMin / s.span, 2 * a.top / weight / s.span, 2 * a.bottomMax / s.span, 2 * a.bottom / weight / s.span,
			2 * (1 - (a.top+a.bottom)/weight/s.span), 2 * float64(u) / float64(units),
			a.phase[graph.Forward] / weight, a.phase[graph.Backward] / weight, a.phase[graph.Update] / weight, a.variable,
			a.chainPlace, log(float64(a.chainLength), 1), 2 * a.variableOrder,
			devices / 8, 2 / devices, math.Min(4, s.total/s.span/devices), log(float64(units), 1) / 2, math.Log10(max(bandwidth, 1e6))/4 - 2,
		}
		for d := range a.shape {
			row = append(row, a.shape[d]/max(a.shapes, 1))
		}
		for _, x := range a.class {
			row = append(row, log(x, 1))
		}
		for k := range c.Harmonics {
			row = append(row, math.Cos(math.Pi*float64(k+1)*(float64(u)+0.5)/float64(units)))
		}
		for k := range c.Harmonics {
			row = append(row, math.Cos(math.Pi*float64(k+1)*a.variableOrder))
		}
		for range c.Identity {
			row = append(row, rng.NormFloat64())
		}
		if len(row) != len(t.Names) {
			panic(fmt.Sprintf("features: %d values for %d columns", len(row), len(t.Names)))
		}
		for _, x := range row {
			t.X = append(t.X, float32(math.Max(-4, math.Min(4, x))))
		}
	}
	return t
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
