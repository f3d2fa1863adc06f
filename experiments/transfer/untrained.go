package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"placer/internal/fsx"
	"placer/placer/policy/sequential"
)

// Files of what fine-tuning comes to that begins with an untrained network.
const (
	untrainedFile  = "untrained.csv"
	untrainedTable = "untrained.md"
)

// untrainedSeed is a line of untrained.csv.
type untrainedSeed struct {
	Workload    string  `csv:"workload"`
	Seed        uint64  `csv:"seed"`
	Step        float64 `csv:"step_s"`
	Took        float64 `csv:"cpu_seconds"` // of all threads
	Evaluations float64 `csv:"evaluations"`
}

func untrainedCommand() command {
	return command{"untrained", "fine-tune from an untrained network, into untrained.csv and untrained.md; takes no policies", func(f *flag.FlagSet) func([]string) error {
		out, only, seeds := outFlag(f), rowsFlag(f), f.Int("seeds", 1, "seeds of fine-tuning")
		return func(files []string) error {
			if len(files) > 0 {
				return fmt.Errorf("%q: it takes no policies", files)
			}
			return judgeUntrained(*out, *only, *seeds)
		}
	}}
}

// judgeUntrained fine-tunes from random weights on the rows that the folder's results.csv
// has, under the seeds that untrained.csv lacks, and writes the table of both.
func judgeUntrained(folder, only string, seeds int) error {
	policy, err := sequential.NewPolicy(sequential.DefaultConfig(), rand.New(rand.NewPCG(1, 0)))
	if err != nil {
		return err
	}
	rows, err := readCSV[row](filepath.Join(folder, resultsFile))
	if err != nil {
		return err
	}
	all, err := readCSV[untrainedSeed](filepath.Join(folder, untrainedFile))
	if err != nil {
		return err
	}
	asked, err := chosen(only, workloadsOf(rows))
	if err != nil {
		return err
	}
	for i := range rows {
		r := &rows[i]
		if !asked(r.Workload) {
			continue
		}
		for seed := uint64(1); seed <= uint64(seeds); seed++ {
			if slices.ContainsFunc(all, func(x untrainedSeed) bool { return x.Workload == r.Workload && x.Seed == seed }) {
				continue
			}
			x, err := r.untrainedOnce(policy, seed)
			if err != nil {
				return fmt.Errorf("%s: %w", r.Workload, err)
			}
			all = append(all, x)
			if err := writeCSV(filepath.Join(folder, untrainedFile), all); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%-11s seed %d: %.1f%%, %.0f CPU s\n", r.Workload, seed, percent(x.Step, r.Human), x.Took)
		}
	}
	tuned, err := readCSV[tunedSeed](filepath.Join(folder, tunedFile))
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errors.New("no row was judged")
	}
	return fsx.WriteFile(filepath.Join(folder, untrainedTable), func(w io.Writer) error { return writeUntrained(w, rows, tuned, all) })
}

func (r *row) untrainedOnce(policy *sequential.Policy, seed uint64) (x untrainedSeed, err error) {
	p, err := sequential.Case{Workload: r.Workload, GPU: "p100", Devices: r.Devices}.Problem()
	if err != nil {
		return x, err
	}
	p.Seed = seed
	begin := cpu()
	o, err := sequential.Tuner{Policy: policy, Config: sequential.DefaultTune()}.Place(context.Background(), p)
	if err != nil {
		return x, err
	}
	return untrainedSeed{r.Workload, seed, seconds(o.Score), cpu() - begin, float64(o.Evaluations)}, nil
}

// writeUntrained writes a line for each row of which some seed is known with both
// networks, and the geometric means of the medians.
func writeUntrained(w io.Writer, rows []row, tuned []tunedSeed, untrained []untrainedSeed) error {
	fmt.Fprint(w, "Fine-tuning that begins with the trained network of the table, and with one of random weights, under the same seeds: medians, reductions against the human expert.\n\n"+
		"| graph | GPUs | seeds | trained | untrained | evaluations | CPU s, trained | CPU s, untrained |\n|---|---|---|---|---|---|---|---|\n")
	sums, n := [2]float64{}, 0
	for i := range rows {
		r := &rows[i]
		var with, without, evaluations, took, tookWithout []float64
		for _, x := range untrained {
			k := slices.IndexFunc(tuned, func(y tunedSeed) bool { return y.Workload == x.Workload && y.Seed == x.Seed })
			if x.Workload == r.Workload && k >= 0 {
				with, without = append(with, tuned[k].Step), append(without, x.Step)
				evaluations, took, tookWithout = append(evaluations, x.Evaluations), append(took, tuned[k].Took), append(tookWithout, x.Took)
			}
		}
		if len(with) == 0 {
			continue
		}
		middle := func(x []float64) float64 { m, _, _ := spread(x); return m }
		n++
		sums[0] += math.Log(middle(with) / r.Human)
		sums[1] += math.Log(middle(without) / r.Human)
		fmt.Fprintf(w, "| %s | %d | %d | %s | %s | %.0f | %.0f | %.0f |\n", r.Workload, r.Devices, len(with), share(percent(middle(with), r.Human)), share(percent(middle(without), r.Human)), middle(evaluations), middle(took), middle(tookWithout))
	}
	mean := func(sum float64) string { return share(100 * (1 - math.Exp(sum/float64(max(n, 1))))) }
	_, err := fmt.Fprintf(w, "| geometric mean of %d | | | %s | %s | | | |\n", n, mean(sums[0]), mean(sums[1]))
	return err
}
