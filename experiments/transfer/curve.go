package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

// size is a variant of the scaling curve.
type size struct{ problems, width int }

func curveCommand() command {
	return command{"curve", "judge policies in folders PROBLEMSxWIDTH-SEED, into runs.csv and " + tableFile, variants(writeCurve)}
}

// writeCurve writes a line for each number of problems and each width of the network:
// reductions of the step against the expert's, in percent, geometric means over rows, means
// over training seeds with intervals of 95%.
func writeCurve(w io.Writer, runs []ablationRun) error {
	var sizes []size
	var seeds []int
	for i := range runs {
		var x size
		if _, err := fmt.Sscanf(runs[i].Variant, "%dx%d", &x.problems, &x.width); err != nil {
			return fmt.Errorf("variant %q, want PROBLEMSxWIDTH: %w", runs[i].Variant, err)
		}
		if !slices.Contains(sizes, x) {
			sizes = append(sizes, x)
		}
		if !slices.Contains(seeds, runs[i].Seed) {
			seeds = append(seeds, runs[i].Seed)
		}
	}
	slices.SortFunc(sizes, func(a, b size) int {
		return cmp.Or(cmp.Compare(a.problems, b.problems), cmp.Compare(a.width, b.width))
	})
	fmt.Fprintln(w, "| problems | width | seeds | 16 made, all judged | best of 16 drafts |\n|---:|---:|---:|---:|---:|")
	for _, x := range sizes {
		var direct, drafts []float64
		for _, seed := range seeds {
			variant := fmt.Sprintf("%dx%d", x.problems, x.width)
			d, rows := reduction(runs, variant, seed, func(r *ablationRun) float64 { return r.Direct })
			if rows < len(ablationRows) {
				continue
			}
			direct = append(direct, d)
			b, _ := reduction(runs, variant, seed, func(r *ablationRun) float64 { return r.Drafts })
			drafts = append(drafts, b)
		}
		fmt.Fprintf(w, "| %d | %d | %d | %s | %s |\n", x.problems, x.width, len(direct), interval(direct), interval(drafts))
	}
	return nil
}
