package main

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"

	"placer/internal/fsx"
)

// percent returns by how much x is shorter than the human expert's step.
func percent(x, human float64) float64 { return 100 * (1 - x/human) }

// share writes a percentage.
func share(x float64) string { return fmt.Sprintf("%.1f%%", x) }

// write writes results.csv and table.md.
func write(folder string, rows []row) error {
	if err := writeCSV(filepath.Join(folder, resultsFile), rows); err != nil {
		return err
	}
	return fsx.WriteFile(filepath.Join(folder, tableFile), func(w io.Writer) error {
		fmt.Fprintln(w, "| graph | GPUs | human | greedy | 16 made, all judged | by their priors alone | CPU s | best of 16 | lowest to highest of the seeds | CPU s | untrained | fine-tuned | lowest to highest | CPU s | search | five minutes | from scratch | its evaluations | evaluations to the same | distance / reach |")
		fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
		for _, r := range rows {
			r.writeText(w)
		}
		return writeMeans(w, rows)
	})
}

// writeText writes r's line of the table.
func (r *row) writeText(w io.Writer) {
	same, tuned, longer, priors := "-", "- | - | -", "-", "-"
	if r.SameAt > 0 {
		same = fmt.Sprintf("%.0f", r.SameAt)
	}
	of := func(x float64) string { return share(percent(x, r.Human)) }
	if r.TunedSeeds > 0 {
		tuned = fmt.Sprintf("%s | %s to %s | %.0f", of(r.Tuned), of(r.TunedHigh), of(r.TunedLow), r.TunedTook)
	}
	if r.Longer > 0 {
		longer = of(r.Longer)
	}
	if r.DirectPriors > 0 {
		priors = of(r.DirectPriors)
	}
	fmt.Fprintf(w, "| %s | %d | %.4g ms | %s | %s | %s | %.2f | %s | %s to %s | %.1f | %s | %s | %s | %s | %s | %.0f | %s | %.2f / %.2f |\n", r.Workload, r.Devices, 1e3*r.Human,
		of(r.Greedy), of(r.Direct), priors, r.DirectTook, of(r.Best), of(r.BestHigh), of(r.BestLow), r.Took, of(r.Untrained), tuned, of(r.Search), longer, of(r.Scratch), r.ScratchEvaluations, same, r.Distance, r.Reach)
}

// writeMeans writes geometric means over the rows: as reductions, and as what is longer
// than the search of five minutes. A mean of what some row lacks is not known.
func writeMeans(w io.Writer, rows []row) error {
	tuned := !slices.ContainsFunc(rows, func(r row) bool { return r.TunedSeeds == 0 })
	guided := !slices.ContainsFunc(rows, func(r row) bool { return r.DirectPriors == 0 })
	searched := !slices.ContainsFunc(rows, func(r row) bool { return r.Longer == 0 })
	mean := func(of func(r *row) float64) (sum float64) {
		for _, r := range rows {
			sum += math.Log(of(&r)/r.Human) / float64(len(rows))
		}
		return sum
	}
	var reductions, longer []any
	five := mean(func(r *row) float64 { return r.Longer })
	for _, c := range []struct {
		mean  float64
		known bool
	}{
		{mean(func(r *row) float64 { return r.Greedy }), true},
		{mean(func(r *row) float64 { return r.Direct }), true},
		{mean(func(r *row) float64 { return r.DirectPriors }), guided},
		{mean(func(r *row) float64 { return r.Best }), true},
		{mean(func(r *row) float64 { return r.Untrained }), true},
		{mean(func(r *row) float64 { return r.Tuned }), tuned},
		{mean(func(r *row) float64 { return r.Search }), true},
		{five, searched},
	} {
		reduction, over := "-", "-"
		if c.known {
			reduction = share(100 * (1 - math.Exp(c.mean)))
			if searched {
				over = share(100 * (math.Exp(c.mean-five) - 1))
			}
		}
		reductions, longer = append(reductions, reduction), append(longer, over)
	}
	fmt.Fprintf(w, "| geometric mean | | | %s | %s | %s | | %s | | | %s | %s | | | %s | %s | | | | |\n", reductions...)
	_, err := fmt.Fprintf(w, "| longer than five minutes of search | | | %s | %s | %s | | %s | | | %s | %s | | | %s | | | | | |\n", longer[:7]...)
	return err
}
