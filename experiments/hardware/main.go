// Command hardware prints a Markdown table of measured steps that it is given as
// files of 'placer measure --json': measured beside predicted, the mean error, and
// Kendall's tau over the plans of one graph on one machine where there are ten or
// more.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"placer/report"
	"placer/roofline"
	"placer/units"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "hardware:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, files []string) error {
	type set struct{ predicted, measured []units.Seconds }
	sets := map[string]*set{}
	var order []string
	sum, n := 0.0, 0
	fmt.Fprintln(w, "| graph | machine | devices | method | issued | measured | predicted | predicted off by |")
	fmt.Fprintln(w, "|---|---|---:|---|---|---:|---:|---:|")
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		var m report.Measurement
		if err := json.Unmarshal(text, &m); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		if m.Format != report.MeasurementFormat {
			return fmt.Errorf("%s: format is %q, want %q", f, m.Format, report.MeasurementFormat)
		}
		for _, r := range m.Runs {
			fmt.Fprintf(w, "| %s | %s | %d | %s | %s | %v | %v | %+.1f%% |\n", m.Graph.Name, m.Machine.Name, m.Machine.Devices, m.Method, r.Mode, units.Seconds(r.Step), units.Seconds(m.Predicted), 100*r.Error)
			sum += math.Abs(r.Error)
			n++
			k := m.Graph.Name + " on " + m.Machine.Name + ", " + r.Mode
			if sets[k] == nil {
				sets[k] = &set{}
				order = append(order, k)
			}
			sets[k].predicted = append(sets[k].predicted, units.Seconds(m.Predicted))
			sets[k].measured = append(sets[k].measured, units.Seconds(r.Step))
		}
	}
	if n > 0 {
		fmt.Fprintf(w, "\nMean error %.1f%% over %d runs.\n", 100*sum/float64(n), n)
	}
	for _, k := range slices.Compact(order) {
		if s := sets[k]; len(s.measured) >= 10 {
			fmt.Fprintf(w, "\n%s: %v\n", k, roofline.NewReport(s.predicted, s.measured))
		}
	}
	return nil
}
