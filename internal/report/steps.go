package report

import (
	"fmt"
	"io"

	"placer/hw/bench"
	"placer/hw/nvml"
	"placer/measure"
	"placer/units"
)

// StepsFormat names the version of Steps as a JSON document.
const StepsFormat = "placer steps 1"

// Steps compares measured steps of many plans with their predictions.
type Steps struct {
	Format     string   `json:"format"`
	Machine    string   `json:"machine"` // whose first GPU stands for all devices
	Calibrated []string `json:"calibrated,omitempty"`
	Host       string   `json:"host"` // driver, libraries and GPU
	Link       string   `json:"link"` // between two devices
	Partition  bool     `json:"partition"`
	Repeats    int      `json:"repeats"`
	// Shares are what was measured of the devices that stand on the GPU together.
	Shares  []*bench.Share `json:"shares,omitempty"`
	Trials  []Trial        `json:"trials"`
	Summary []Errors       `json:"summary"`
	Notes   []string       `json:"notes,omitempty"`
}

// Trial is one plan, measured in one mode.
type Trial struct {
	Workload  string  `json:"workload"`
	Devices   int     `json:"devices"`
	SMs       int     `json:"sms,omitempty"` // of each device, where they are divided
	Plan      string  `json:"plan"`
	Mode      string  `json:"mode"`
	Kernels   int     `json:"kernels"`
	Predicted float64 `json:"predicted_s"`
	Measured  float64 `json:"measured_s,omitempty"`
	Failed    string  `json:"failed,omitempty"` // why there is no measurement
	// Issue is how long the host took to issue the step, waits included where it was
	// far ahead of the device.
	Issue   float64         `json:"issue_s,omitempty"`
	Steps   []float64       `json:"steps_s,omitempty"`
	Took    float64         `json:"took_s"`              // preparing and measuring, by the host's clock
	Clock   int             `json:"clock_mhz,omitempty"` // the lowest seen behind a step
	Held    bool            `json:"clock_held_down,omitempty"`
	Classes []measuredClass `json:"classes,omitempty"` // of a traced step, whose events cost some microseconds each
}

// Add adds what is known of the measured step.
func (t *Trial) Add(r *measure.Result) {
	t.Issue = float64(r.Issue)
	for _, s := range r.Steps {
		t.Steps = append(t.Steps, float64(s))
	}
	for _, s := range r.States {
		if t.Clock == 0 || s.SMClock < t.Clock {
			t.Clock = s.SMClock
		}
		t.Held = t.Held || s.Throttle&nvml.Spoiled != 0
	}
	t.Classes = classesOf(r)
}

// HostBound reports whether the host's issuing is what the eager step t takes,
// given the same plan measured as a graph: issuing alone does not tell, because the
// host waits where it is too far ahead of the device.
func (t *Trial) HostBound(graph *Trial) bool {
	return t.Issue > 0.8*t.Measured && t.Measured > 1.2*graph.Measured
}

func classesOf(r *measure.Result) (out []measuredClass) {
	for _, c := range r.Classes {
		out = append(out, measuredClass{c.Class, c.Ops, float64(c.Measured), float64(c.Predicted), c.MAPE, c.P95, c.Kendall})
	}
	return out
}

// Errors says how well a set of trials was predicted.
type Errors struct {
	Of      string  `json:"of"`
	Trials  int     `json:"trials"`
	MAPE    float64 `json:"mape"`
	P95     float64 `json:"p95"`
	Kendall float64 `json:"kendall_tau"`
}

// RandomPlan is the plan of a Trial that was drawn.
const RandomPlan = "random"

// WriteText writes s as Markdown.
func (s *Steps) WriteText(w io.Writer) error {
	pg := newPage(w)
	pg.printf("%s, links of %s; %s.\n\n", s.Host, s.Link, calibration(s.Calibrated))
	pg.lines("| steps | plans | mean error | p95 | Kendall's tau |")
	pg.lines("|---|---:|---:|---:|---:|")
	for _, e := range s.Summary {
		pg.printf("| %s | %d | %s | %s | %.2f |\n", e.Of, e.Trials, percent(e.MAPE, 1), percent(e.P95, 1), e.Kendall)
	}
	pg.lines("\n| workload | devices | plan | issued | kernels | predicted | measured | predicted off by | host issues in | clock |")
	pg.lines("|---|---:|---|---|---:|---:|---:|---:|---:|---:|")
	for i := range s.Trials {
		t := &s.Trials[i]
		measured, off := t.Failed, ""
		if t.Failed == "" {
			measured, off = units.Seconds(t.Measured).String(), fmt.Sprintf("%+.1f%%", 100*(t.Predicted/t.Measured-1))
		}
		devices := fmt.Sprint(t.Devices)
		if t.SMs > 0 {
			devices += fmt.Sprintf(" of %d SMs", t.SMs)
		}
		pg.printf("| %s | %s | %s | %s | %d | %v | %s | %s | %v | %d MHz |\n", t.Workload, devices, t.Plan, t.Mode, t.Kernels, units.Seconds(t.Predicted), measured, off, units.Seconds(t.Issue), t.Clock)
	}
	for _, n := range s.Notes {
		pg.printf("\n%s\n", n)
	}
	return pg.err
}

func calibration(what []string) string {
	if len(what) == 0 {
		return "built-in constants"
	}
	return fmt.Sprintf("calibrated for %v", what)
}
