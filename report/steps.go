package report

import (
	"fmt"
	"io"

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
	Trials     []Trial  `json:"trials"`
	Summary    []Errors `json:"summary"`
	Notes      []string `json:"notes,omitempty"`
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
	fmt.Fprintf(w, "%s, links of %s; %s.\n\n", s.Host, s.Link, calibration(s.Calibrated))
	fmt.Fprintln(w, "| steps | plans | mean error | p95 | Kendall's tau |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|")
	for _, e := range s.Summary {
		fmt.Fprintf(w, "| %s | %d | %s | %s | %.2f |\n", e.Of, e.Trials, percent(e.MAPE, 1), percent(e.P95, 1), e.Kendall)
	}
	fmt.Fprintln(w, "\n| workload | devices | plan | issued | kernels | predicted | measured | predicted off by |")
	fmt.Fprintln(w, "|---|---:|---|---|---:|---:|---:|---:|")
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
		fmt.Fprintf(w, "| %s | %s | %s | %s | %d | %v | %s | %s |\n", t.Workload, devices, t.Plan, t.Mode, t.Kernels, units.Seconds(t.Predicted), measured, off)
	}
	for _, n := range s.Notes {
		fmt.Fprintf(w, "\n%s\n", n)
	}
	return nil
}

func calibration(what []string) string {
	if len(what) == 0 {
		return "built-in constants"
	}
	return fmt.Sprintf("calibrated for %v", what)
}
