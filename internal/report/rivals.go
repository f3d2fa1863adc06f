package report

import (
	"fmt"
	"io"
	"slices"
	"strconv"
)

// PartitioningFormat names the version of Partitioning as a JSON document.
const PartitioningFormat = "placer bench dnn-partitioning 1"

// Partitioning compares splits of the published partitioning instances by their
// largest load.
type Partitioning struct {
	Format string            `json:"format"`
	Moves  int               `json:"moves"`
	Seed   uint64            `json:"seed"`
	Rows   []PartitioningRow `json:"rows"`
}

// PartitioningRow is one instance; loads are in milliseconds.
type PartitioningRow struct {
	Input        string   `json:"input"`
	Nodes        int      `json:"nodes"`
	Accelerators int      `json:"accelerators"`
	Published    *float64 `json:"published_optimum_ms"` // of contiguous splits, by the reference solver
	Linear       float64  `json:"linear_ms"`            // best cut of topological orders
	Layers       float64  `json:"pipedream_ms"`         // the same, biconnected components joined before
	LayersWas    *float64 `json:"published_pipedream_ms"`
	Contiguous   float64  `json:"contiguous_ms"`
	Optimal      bool     `json:"contiguous_optimal"`
	Downsets     int      `json:"downsets"`
	Seconds      float64  `json:"contiguous_seconds"`
	Free         float64  `json:"any_shape_ms"`
	FreeSeconds  float64  `json:"any_shape_seconds"`
	Bound        float64  `json:"lower_bound_ms"` // of splits of any shape, proven
	Gap          float64  `json:"gap"`            // of the split of any shape
	Expert       *float64 `json:"expert_ms"`
	ExpertWas    *float64 `json:"published_expert_ms"`
}

// WriteText writes p as a table.
func (p *Partitioning) WriteText(w io.Writer) error {
	pg := newPage(w)
	t := newTable("input", ">nodes", ">published", ">linear", ">pipedream", ">published", ">contiguous", ">downsets", ">seconds", ">any shape", ">seconds", ">bound", ">gap", ">expert", ">published").fitting("seconds", "downsets", "seconds", "published", "nodes", "published", "published", "gap")
	ms := func(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
	maybe := func(x *float64) string {
		if x == nil {
			return "-"
		}
		return ms(*x)
	}
	for _, r := range p.Rows {
		optimum := ms(r.Contiguous)
		if !r.Optimal {
			optimum += " ?"
		}
		t.row(r.Input, r.Nodes, maybe(r.Published), ms(r.Linear), ms(r.Layers), maybe(r.LayersWas), optimum, r.Downsets, fmt.Sprintf("%.3f", r.Seconds),
			ms(r.Free), fmt.Sprintf("%.3f", r.FreeSeconds), ms(r.Bound), fmt.Sprintf("%.1f%%", 100*r.Gap), maybe(r.Expert), maybe(r.ExpertWas))
	}
	pg.table(t)
	pg.prose(fmt.Sprintf("largest loads in ms; contiguous splits are optimal unless marked \"?\"; pipedream: cuts of a linear order of biconnected components; any shape: %d moves, seed %d, and its gap to the proven bound", p.Moves, p.Seed))
	return pg.err
}

// TaskGraphsFormat names the version of TaskGraphs as a JSON document.
const TaskGraphsFormat = "placer bench doppler 1"

// TaskGraphs compares placements of DOPPLER's graphs by their step time under
// its model: first come first served, transfers without contention.
type TaskGraphs struct {
	Format string         `json:"format"`
	Steps  int            `json:"steps"`
	Seed   uint64         `json:"seed"`
	Rows   []TaskGraphRow `json:"rows"`
}

// TaskGraphRow is one graph; times are in milliseconds.
type TaskGraphRow struct {
	Graph    string             `json:"graph"`
	Ops      int                `json:"ops"`
	Devices  int                `json:"devices"`
	Rivals   map[string]float64 `json:"rivals_ms"`
	Found    float64            `json:"uncontended_ms"`
	Bound    float64            `json:"lower_bound_ms"`
	Gap      float64            `json:"gap"`
	Seconds  float64            `json:"seconds"`
	Placed   []uint8            `json:"device"`
	Optimal  bool               `json:"optimal"` // the bound is reached
	Rejected []string           `json:"unavailable,omitempty"`
}

// WriteText writes t as a table, with the rivals in the order of names.
func (t *TaskGraphs) WriteText(w io.Writer) error {
	pg := newPage(w)
	names := t.rivals()
	head := []string{"graph", ">ops", ">devices"}
	for _, n := range append(names, "uncontended", "bound", "gap", "seconds") {
		head = append(head, ">"+n)
	}
	tab := newTable(head...)
	for _, r := range t.Rows {
		cells := []any{r.Graph, r.Ops, r.Devices}
		for _, n := range names {
			if x, ok := r.Rivals[n]; ok {
				cells = append(cells, fmt.Sprintf("%.2f", x))
			} else {
				cells = append(cells, "-")
			}
		}
		gap := fmt.Sprintf("%.2f%%", 100*r.Gap)
		if r.Optimal {
			gap = "optimal"
		}
		tab.row(append(cells, fmt.Sprintf("%.2f", r.Found), fmt.Sprintf("%.2f", r.Bound), gap, fmt.Sprintf("%.2f", r.Seconds))...)
	}
	pg.table(tab)
	pg.prosef("step times in ms, first come first served, transfers without contention; %d placements clocked from seed %d\n", t.Steps, t.Seed)
	return pg.err
}

// rivals returns the names of the rivals, in the order that single, contiguous
// blocks and rules of thumb come in.
func (t *TaskGraphs) rivals() []string {
	return slices.DeleteFunc(slices.Clone(TaskGraphRivals), func(n string) bool {
		return !slices.ContainsFunc(t.Rows, func(r TaskGraphRow) bool { _, ok := r.Rivals[n]; return ok })
	})
}

// TaskGraphRivals are the methods of the catalogue that the table has beside the
// specialised search.
var TaskGraphRivals = []string{"single", "human", "roundrobin", "heft", "etf", "listsched"}
