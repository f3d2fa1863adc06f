package report

import (
	"io"
	"strings"

	"placer/internal/words"
	"placer/units"
)

// ReplannedFormat names the version of Replanned as a JSON document.
const ReplannedFormat = "placer replan 1"

// Replanned is a plan that was changed because its machine changed.
type Replanned struct {
	Format      string   `json:"format"`
	Graph       Graph    `json:"graph"`
	Machine     Machine  `json:"machine"`
	Lost        []string `json:"lost"` // devices of the old plan that the machine does not have
	Kept        float64  `json:"kept_step_time_s"`
	KeptMissing int64    `json:"kept_missing_bytes"`
	StepTime    float64  `json:"step_time_s"`
	Feasible    bool     `json:"feasible"`
	Missing     int64    `json:"missing_bytes"`
	Moved       int64    `json:"moved_bytes"`
	Forced      int64    `json:"forced_bytes"`
	Held        int64    `json:"held_bytes"`
	Limit       *int64   `json:"limit_bytes"`
	Evaluations int      `json:"evaluations"`
}

// WriteText writes r as sentences.
func (r *Replanned) WriteText(w io.Writer) error {
	pg := newPage(w)
	lost := ""
	if len(r.Lost) > 0 {
		lost = "; lost: " + strings.Join(r.Lost, " ")
	}
	pg.prosef("%s: %s on %s, %s%s\n", r.Graph.Name, words.Count(r.Graph.Ops, "op", "ops"), r.Machine.Name, devices(r.Machine.Devices), lost)
	pg.prosef("moving only what was lost, %s: step %s%s\n", units.Bytes(r.Forced), seconds(r.Kept), lacks(r.KeptMissing))
	pg.prosef("moving %s of %s: step %s%s; %s\n", units.Bytes(r.Moved), units.Bytes(r.Held), seconds(r.StepTime), lacks(r.Missing), words.Count(r.Evaluations, "evaluation", "evaluations"))
	return pg.err
}

func lacks(missing int64) string {
	if missing == 0 {
		return ""
	}
	return ", lacks " + units.Bytes(missing).String()
}
