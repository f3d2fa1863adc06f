package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"placer/internal/fsx"
)

// write writes results.csv and table.md.
func write(folder string, rows []row) error {
	if err := fsx.WriteFile(filepath.Join(folder, "results.csv"), func(w io.Writer) error {
		c := csv.NewWriter(w)
		c.Write(append([]string{"workload", "devices", "policy"}, columns...))
		for _, r := range rows {
			record := []string{r.Workload, fmt.Sprint(r.Devices), r.Policy}
			for _, x := range r.values() {
				record = append(record, fmt.Sprintf("%.6g", *x))
			}
			c.Write(record)
		}
		c.Flush()
		return c.Error()
	}); err != nil {
		return err
	}
	return fsx.WriteFile(filepath.Join(folder, "table.md"), func(w io.Writer) error {
		fmt.Fprintln(w, "| graph | GPUs | human | greedy | best of 16 | lowest to highest of the seeds | CPU s | untrained | fine-tuned | lowest to highest | CPU s | search | five minutes | from scratch | its evaluations | evaluations to the same | distance / reach |")
		fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
		var g, b, u, t, s, l float64
		tuned, searched := true, true
		for _, r := range rows {
			same := "-"
			if r.SameAt > 0 {
				same = fmt.Sprintf("%.0f", r.SameAt)
			}
			learned := "- | - | -"
			if r.TunedSeeds > 0 {
				learned = fmt.Sprintf("%.1f%% | %.1f%% to %.1f%% | %.0f", percent(r.Tuned, r.Human), percent(r.TunedHigh, r.Human), percent(r.TunedLow, r.Human), r.TunedTook)
			}
			tuned, searched = tuned && r.TunedSeeds > 0, searched && r.Longer > 0
			five := "-"
			if r.Longer > 0 {
				five = fmt.Sprintf("%.1f%%", percent(r.Longer, r.Human))
			}
			fmt.Fprintf(w, "| %s | %d | %.4g ms | %.1f%% | %.1f%% | %.1f%% to %.1f%% | %.1f | %.1f%% | %s | %.1f%% | %s | %.1f%% | %.0f | %s | %.2f / %.2f |\n", r.Workload, r.Devices, 1e3*r.Human,
				percent(r.Greedy, r.Human), percent(r.Best, r.Human), percent(r.BestHigh, r.Human), percent(r.BestLow, r.Human), r.Took, percent(r.Untrained, r.Human), learned, percent(r.Search, r.Human), five, percent(r.Scratch, r.Human), r.ScratchEvaluations, same, r.Distance, r.Reach)
			n := float64(len(rows))
			u += math.Log(r.Untrained/r.Human) / n
			g += math.Log(r.Greedy/r.Human) / n
			b += math.Log(r.Best/r.Human) / n
			t += math.Log(r.Tuned/r.Human) / n
			s += math.Log(r.Search/r.Human) / n
			l += math.Log(r.Longer/r.Human) / n
		}
		// Means over the rows, as reductions and as what is longer than the search of
		// five minutes.
		shorter := func(x float64, known bool) string {
			if !known {
				return "-"
			}
			return fmt.Sprintf("%.1f%%", 100*(1-math.Exp(x)))
		}
		longer := func(x float64, known bool) string {
			if !known || !searched {
				return "-"
			}
			return fmt.Sprintf("%.1f%%", 100*(math.Exp(x-l)-1))
		}
		fmt.Fprintf(w, "| geometric mean | | | %s | %s | | | %s | %s | | | %s | %s | | | | |\n", shorter(g, true), shorter(b, true), shorter(u, true), shorter(t, tuned), shorter(s, true), shorter(l, searched))
		_, err := fmt.Fprintf(w, "| longer than five minutes of search | | | %s | %s | | | %s | %s | | | %s | | | | | |\n", longer(g, true), longer(b, true), longer(u, true), longer(t, tuned), longer(s, true))
		return err
	})
}
