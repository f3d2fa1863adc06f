package report

import (
	"fmt"
	"io"

	"placer/graph"
	"placer/hw"
	"placer/internal/words"
	"placer/placer/check"
	"placer/units"
)

// checkFormat names the version of Check as a JSON document.
const checkFormat = "placer check 1"

// Check is what a check has found.
type Check struct {
	Format   string    `json:"format"`
	Graph    Graph     `json:"graph"`
	Machine  Machine   `json:"machine"`
	Step     *float64  `json:"step_time_s"` // null where the placement cannot be simulated
	Errors   int       `json:"errors"`
	Warnings int       `json:"warnings"`
	Findings []finding `json:"findings"`
}

// finding is one fault.
type finding struct {
	Rule     check.Rule     `json:"rule"`
	Severity check.Severity `json:"severity"`
	Op       string         `json:"op,omitempty"`
	Device   string         `json:"device,omitempty"`
	Ops      int            `json:"ops"`
	Seconds  float64        `json:"seconds"`
	Bytes    int64          `json:"bytes"`
	Message  string         `json:"message"`
	Fix      string         `json:"fix,omitempty"`
	Gain     *float64       `json:"gain_s"` // null where no change was simulated that makes the step shorter
}

// Checked describes r, of a placement of g on m.
func Checked(g *graph.Graph, m *hw.Machine, r *check.Report) *Check {
	c := &Check{Format: checkFormat, Graph: IdentifyGraph(g), Machine: IdentifyMachine(m), Errors: r.Count(check.Error), Warnings: r.Count(check.Warning), Findings: []finding{}}
	if r.Step > 0 {
		step := float64(r.Step)
		c.Step = &step
	}
	for _, f := range r.Findings {
		x := finding{Rule: f.Rule, Severity: f.Severity, Op: f.Op, Device: f.Device, Ops: f.Ops, Seconds: float64(f.Seconds), Bytes: int64(f.Bytes), Message: f.Message, Fix: f.Fix}
		if f.Tried && f.Gain > 0 {
			gain := float64(f.Gain)
			x.Gain = &gain
		}
		c.Findings = append(c.Findings, x)
	}
	return c
}

// WriteText writes c, one finding after another.
func (c *Check) WriteText(w io.Writer) error {
	pg := newPage(w)
	for _, f := range c.Findings {
		pg.prose(fmt.Sprintf("%s: %s: %s.", f.Severity, f.Rule, f.Message))
		if f.Fix == "" {
			continue
		}
		fix := "  to do: " + f.Fix
		if f.Gain != nil {
			fix += fmt.Sprintf(" (simulated: %v less, %s of the step)", units.Seconds(*f.Gain), percent(*f.Gain, *c.Step))
		}
		pg.folded("  ", fix+".")
	}
	step := "it was not simulated"
	if c.Step != nil {
		step = fmt.Sprintf("its step takes %v", units.Seconds(*c.Step))
	}
	pg.prose(fmt.Sprintf("%s on %s: %s, %s; %s.", c.Graph.Name, c.Machine.Name, words.Count(c.Errors, "error", "errors"), words.Count(c.Warnings, "warning", "warnings"), step))
	return pg.err
}
