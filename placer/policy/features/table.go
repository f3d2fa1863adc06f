package features

import (
	"fmt"
	"math"
	"math/rand/v2"

	"placer/graph"
	"placer/graph/unit"
	"placer/hw"
)

// Source is what features are read from: units of a graph on a machine.
type Source struct {
	Graph   *graph.Graph
	Units   *unit.Partition
	Chain   *unit.Partition // coarser: each unit of Units lies in one of these, its chain
	Seconds []float64       // [N] of the ops, on the machine's first device
	Machine *hw.Machine
}

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

// NumColumns returns F for c.
func (c Config) NumColumns() int { return len(c.columns(nil)) }

// table is what columns are computed from.
type table struct {
	*summary
	units, devices float64
	memory         float64 // bytes of the first device
	bandwidth      float64 // bytes a second between the first two devices, 0 for one device
	random         *rand.Rand
}

// column is one column by its name: value is that of unit u, whose ops sum to a.
type column struct {
	name  string
	value func(u float64, a *row) float64
}

// log compresses a positive quantity to a few units.
func log(x, scale float64) float64 { return math.Log1p(x*scale) / 4 }

// columns lists the columns in order, with their values for units of t.
func (c Config) columns(t *table) []column {
	weight := func(a *row) float64 { return math.Max(a.seconds, 1e-12) }
	all := []column{
		{"time_share", func(_ float64, a *row) float64 { return a.seconds / t.total * t.units / 4 }},
		{"time_log", func(_ float64, a *row) float64 { return log(a.seconds, 1e6) / 2 }},
		{"time_per_device", func(_ float64, a *row) float64 { return math.Min(a.seconds/(t.total/t.devices)*2, 4) }},
		{"flops_log", func(_ float64, a *row) float64 { return log(a.flops, 1e-6) }},
		{"bytes_log", func(_ float64, a *row) float64 { return log(a.bytes, 1e-3) }},
		{"params_log", func(_ float64, a *row) float64 { return log(a.params, 1e-3) }},
		{"resident_log", func(_ float64, a *row) float64 { return log(a.resident, 1e-3) }},
		{"resident_of_memory", func(_ float64, a *row) float64 { return math.Min(4, a.resident/t.memory*8) }},
		{"out_log", func(_ float64, a *row) float64 { return log(a.outBytes, 1e-3) }},
		{"in_log", func(_ float64, a *row) float64 { return log(a.inBytes, 1e-3) }},
		{"out_time_share", func(_ float64, a *row) float64 { return math.Min(4, ratio(a.outBytes, t.bandwidth)/weight(a)) }},
		{"in_time_share", func(_ float64, a *row) float64 { return math.Min(4, ratio(a.inBytes, t.bandwidth)/weight(a)) }},
		{"ops_log", func(_ float64, a *row) float64 { return log(float64(a.ops), 1) }},
		{"in_degree", func(_ float64, a *row) float64 { return log(float64(a.in), 1) }},
		{"out_degree", func(_ float64, a *row) float64 { return log(float64(a.out), 1) }},
		{"top_min", func(_ float64, a *row) float64 { return 2 * a.topMin / t.span }},
		{"top_mean", func(_ float64, a *row) float64 { return 2 * a.top / weight(a) / t.span }},
		{"bottom_max", func(_ float64, a *row) float64 { return 2 * a.bottomMax / t.span }},
		{"bottom_mean", func(_ float64, a *row) float64 { return 2 * a.bottom / weight(a) / t.span }},
		{"slack", func(_ float64, a *row) float64 { return 2 * (1 - (a.top+a.bottom)/weight(a)/t.span) }},
		{"order", func(u float64, _ *row) float64 { return 2 * u / t.units }},
		{"forward", func(_ float64, a *row) float64 { return a.phase[graph.Forward] / weight(a) }},
		{"backward", func(_ float64, a *row) float64 { return a.phase[graph.Backward] / weight(a) }},
		{"update", func(_ float64, a *row) float64 { return a.phase[graph.Update] / weight(a) }},
		{"variable", func(_ float64, a *row) float64 { return a.variable }},
		{"chain_place", func(_ float64, a *row) float64 { return a.chainPlace }},
		{"chain_length", func(_ float64, a *row) float64 { return log(float64(a.chainLength), 1) }},
		{"variable_order", func(_ float64, a *row) float64 { return 2 * a.variableOrder }},
		{"devices", func(float64, *row) float64 { return t.devices / 8 }},
		{"devices_inverse", func(float64, *row) float64 { return 2 / t.devices }},
		{"width", func(float64, *row) float64 { return math.Min(4, t.total/t.span/t.devices) }},
		{"units_log", func(float64, *row) float64 { return log(t.units, 1) / 2 }},
		{"bandwidth_log", func(float64, *row) float64 { return math.Log10(max(t.bandwidth, 1e6))/4 - 2 }},
	}
	for d := range 4 {
		all = append(all, column{fmt.Sprintf("shape_%d", d), func(_ float64, a *row) float64 { return a.shape[d] / max(a.shapes, 1) }})
	}
	for k := range graph.NumClasses {
		all = append(all, column{"class_" + graph.Class(k).String(), func(_ float64, a *row) float64 { return log(a.class[k], 1) }})
	}
	for k := range c.Harmonics {
		all = append(all, column{fmt.Sprintf("order_cos_%d", k+1), func(u float64, _ *row) float64 {
			return math.Cos(math.Pi * float64(k+1) * (u + 0.5) / t.units)
		}})
	}
	for k := range c.Harmonics {
		all = append(all, column{fmt.Sprintf("variable_cos_%d", k+1), func(_ float64, a *row) float64 {
			return math.Cos(math.Pi * float64(k+1) * a.variableOrder)
		}})
	}
	for k := range c.Identity {
		all = append(all, column{fmt.Sprintf("identity_%d", k), func(float64, *row) float64 { return t.random.NormFloat64() }})
	}
	return all
}

// Build computes the columns of the units of s. rng is read for the Identity columns
// only. Build panics if there is not a time for each op.
func Build(s Source, c Config, rng *rand.Rand) *Table {
	if len(s.Seconds) != s.Graph.NumOps() {
		panic(fmt.Sprintf("features: %d times for %d ops", len(s.Seconds), s.Graph.NumOps()))
	}
	from := &table{summary: summarise(s), units: float64(s.Units.NumUnits()), devices: float64(s.Machine.NumDevices()), memory: float64(s.Machine.Devices[0].Memory), random: rng}
	if s.Machine.NumDevices() > 1 {
		_, b := s.Machine.Transfer(0, 1)
		from.bandwidth = float64(b)
	}
	columns := c.columns(from)
	t := &Table{}
	for _, x := range columns {
		t.Names = append(t.Names, x.name)
	}
	for u := range from.rows {
		for _, x := range columns {
			t.X = append(t.X, float32(math.Max(-4, math.Min(4, x.value(float64(u), &from.rows[u])))))
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
