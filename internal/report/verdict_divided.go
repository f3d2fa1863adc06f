package report

import (
	"fmt"
	"slices"

	"placer/placer/strategies"
	"placer/units"
)

// dividedRow is the best way found to divide the batch among some devices.
type dividedRow struct {
	Machine string `json:"machine"`
	Devices int    `json:"devices"`
	strategyRow
}

// undivided is the note of a verdict that knows no strategies.
const undivided = "A plan places the ops of one step: the batch is not divided among copies of the model."

// Divide adds the best way found to divide the batch of the verdict among devices of a machine, and
// says where it is the faster one.
func (v *Verdict) Divide(machine string, devices int, r *strategies.Row) {
	v.Divided = append(v.Divided, dividedRow{machine, devices, describeStrategy(r, int64(v.Batch))})
	if k := slices.Index(v.Notes, undivided); k >= 0 {
		v.Notes[k] = "Fusion: by the default rules where the batch is divided, searched in placements of the undivided step."
	}
}

// SayDivided adds a sentence for each machine: its fastest count with the batch divided.
func (v *Verdict) SayDivided() {
	for _, m := range v.Machines {
		var best *dividedRow
		for k := range v.Divided {
			if d := &v.Divided[k]; d.Machine == m.Name && d.Feasible && (best == nil || d.Rate > best.Rate) {
				best = d
			}
		}
		if best == nil {
			continue
		}
		placed := 0.0
		for k := range v.Rows {
			if r := &v.Rows[k]; r.Machine == m.Name {
				placed = max(placed, r.Rate)
			}
		}
		s := fmt.Sprintf("%s: with the batch divided among %s (%s): %.4g samples/s", m.Name, devices(best.Devices), best.Strategy, best.Rate)
		switch {
		case placed == 0:
			s += "."
		case best.Rate > placed:
			s += fmt.Sprintf(", %.2f times the best placement of the undivided step.", best.Rate/placed)
		default:
			s += ", less than the best placement of the undivided step."
		}
		v.Headline = append(v.Headline, s)
	}
}

// writeDivided writes the ways to divide the batch.
func (v *Verdict) writeDivided(pg *page) {
	if len(v.Divided) == 0 {
		return
	}
	pg.prosef("\nthe batch divided among the devices (best of five; placer strategies has all)\n")
	t := newTable("machine", ">n", "strategy", ">step", ">samples/s", ">fullest", ">bubble")
	for _, d := range v.Divided {
		most := int64(0)
		for _, b := range d.Peak {
			most = max(most, b)
		}
		rate := "no fit"
		if d.Feasible {
			rate = fmt.Sprintf("%.4g", d.Rate)
		}
		t.row(clip(d.Machine, 10), d.Devices, d.Strategy, seconds(d.StepTime), rate, units.Bytes(most), fmt.Sprintf("%.1f%%", 100*d.Bubble))
	}
	pg.table(t.fitting("bubble"))
}
