package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"placer/internal/words"
	"placer/units"
)

// FittedFormat names the version of Fitted as a JSON document.
const FittedFormat = "placer fit 1"

// Fitted is what making a graph fit came to.
type Fitted struct {
	Format      string      `json:"format"`
	Graph       Graph       `json:"graph"`
	Machine     Machine     `json:"machine"`
	Layers      int         `json:"layers"` // that can give up activations
	Tried       []FittedRow `json:"tried"`
	Best        FittedRow   `json:"best"` // after its layers were tried one by one
	LowerBound  float64     `json:"lower_bound_s"`
	Peak        []int64     `json:"peak_bytes"` // of Best, by device
	Evaluations int         `json:"evaluations"`
	Notes       []string    `json:"notes,omitempty"`
	devices     []string
}

// FittedRow is one way to fit.
type FittedRow struct {
	Method    string  `json:"method"` // that placed the graph as it was given
	Way       string  `json:"way"`
	Recompute []int32 `json:"recompute,omitempty"` // layers
	Offload   []int32 `json:"offload,omitempty"`
	StepTime  float64 `json:"step_time_s"`
	Feasible  bool    `json:"feasible"`
	Missing   []int64 `json:"missing_bytes"` // by device
}

// Devices says what the devices are called.
func (f *Fitted) Devices(names []string) { f.devices = names }

// WriteText writes f as a table.
func (f *Fitted) WriteText(w io.Writer) error {
	pg := newPage(w)
	pg.prosef("%s: %s on %s, %s\n", f.Graph.Name, words.Count(f.Graph.Ops, "op", "ops"), f.Machine.Name, devices(f.Machine.Devices))
	pg.printf("  %s can give up activations\n", words.Count(f.Layers, "layer", "layers"))
	t := newTable("placed by", "way", ">recomputed", ">on the host", ">step time", ">missing")
	rows := slices.Clone(f.Tried)
	if f.Best.Way != "as it is" {
		rows = append(rows, f.Best)
		rows[len(f.Tried)].Method += " *"
	}
	for _, r := range rows {
		t.row(r.Method, r.Way, len(r.Recompute), len(r.Offload), seconds(r.StepTime), f.missing(r))
	}
	pg.table(t)
	for _, n := range f.Notes {
		pg.prose(n)
	}
	b := f.Best
	switch {
	case !b.Feasible:
		pg.prosef("nothing fits: the closest, %s, still lacks %s; %s\n", b.Method+" "+b.Way, f.missing(b), words.Count(f.Evaluations, "evaluation", "evaluations"))
		return pg.err
	case b.Way == "as it is":
		pg.prosef("it fits as it is: placed by %s, step %s\n", b.Method, seconds(b.StepTime))
	default:
		pg.prosef("* after single layers of the best row were changed: step %s, %s recomputed (%s), %d on the host (%s)\n", seconds(b.StepTime), words.Count(len(b.Recompute), "layer", "layers"), ranges(b.Recompute), len(b.Offload), ranges(b.Offload))
	}
	var peaks []string
	for d, p := range f.Peak {
		peaks = append(peaks, fmt.Sprintf("%s %s", f.devices[d], units.Bytes(p)))
	}
	pg.prosef("peaks: %s; %s\n", strings.Join(peaks, ", "), words.Count(f.Evaluations, "evaluation", "evaluations"))
	return pg.err
}

func (f *Fitted) missing(r FittedRow) string {
	var parts []string
	for d, b := range r.Missing {
		if b > 0 {
			parts = append(parts, fmt.Sprintf("%s on %s", units.Bytes(b), f.devices[d]))
		}
	}
	if len(parts) == 0 {
		return "fits"
	}
	return strings.Join(parts, ", ")
}

// ranges writes ascending numbers as "1-4, 7", none as "none".
func ranges(xs []int32) string {
	var parts []string
	for i := 0; i < len(xs); {
		k := i
		for k+1 < len(xs) && xs[k+1] == xs[k]+1 {
			k++
		}
		if k == i {
			parts = append(parts, fmt.Sprint(xs[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", xs[i], xs[k]))
		}
		i = k + 1
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
