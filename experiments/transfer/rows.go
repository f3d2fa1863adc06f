package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files of the folder of results.
const (
	resultsFile = "results.csv"
	tunedFile   = "tuned.csv"
	tableFile   = "table.md"
)

// tuning says how to fine-tune.
type tuning struct{ steps, seeds, samples int }

func rowsCommand() command {
	return command{"rows", "judge the rows of table 2, zero-shot and fine-tuned, into " + resultsFile + ", " + tunedFile + " and " + tableFile, func(f *flag.FlagSet) func([]string) error {
		out, only, tune := outFlag(f), rowsFlag(f), tuning{}
		seeds := f.Int("seeds", 6, "seeds of sampling")
		f.IntVar(&tune.steps, "tune", 49, "steps of fine-tuning; 0 leaves it out")
		f.IntVar(&tune.seeds, "tune-seeds", 3, "seeds of fine-tuning")
		f.IntVar(&tune.samples, "samples", 0, "placements of a step of fine-tuning; 0 chooses by the graph")
		return func(files []string) error { return judgeRows(*seeds, tune, *out, *only, files) }
	}}
}

// judgeRows judges each row by the policy that holds out its family. What results.csv has of
// a row is kept, zero-shot and fine-tuned each on its own, and so is every seed of fine-tuning
// in tuned.csv; where the fine_tuned columns are taken out, and the row's lines in tuned.csv,
// they alone are judged anew.
func judgeRows(seeds int, tune tuning, out, only string, files []string) error {
	policies, names, err := readPolicies(files)
	if err != nil {
		return err
	}
	rows, err := rowsOf("experiments/table2/rows.tsv", out)
	if err != nil {
		return err
	}
	asked, err := chosen(only, workloadsOf(rows))
	if err != nil {
		return err
	}
	wanted := func(r *row) bool {
		if r.whole(tune) || !asked(r.Workload) {
			return false
		}
		family := r.family()
		if policies[family] == nil {
			fmt.Fprintf(os.Stderr, "%s: no policy holds out %s\n", r.Workload, family)
		}
		return policies[family] != nil
	}
	judge := func(r *row) error {
		r.Policy = names[r.family()]
		if err := r.judge(policies[r.family()], seeds, tune, out); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%-11s greedy %5.1f%%, best of 16 %5.1f%% (%.1f%% to %.1f%%), fine-tuned %5.1f%% in %.0f s, search %5.1f%%\n", r.Workload,
			percent(r.Greedy, r.Human), percent(r.Best, r.Human), percent(r.BestHigh, r.Human), percent(r.BestLow, r.Human), percent(r.Tuned, r.Human), r.TunedTook, percent(r.Search, r.Human))
		return nil
	}
	return judgeEach(rows, wanted, judge, func(rows []row) error { return write(out, rows) })
}

// rowsOf returns the rows of a file of workloads and numbers of devices, with what
// results.csv in the folder has of them.
func rowsOf(file, folder string) (rows []row, err error) {
	cases, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	kept, err := readCSV[row](filepath.Join(folder, resultsFile))
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(cases)) {
		r := row{}
		if _, err := fmt.Sscanf(line, "%s\t%d", &r.Workload, &r.Devices); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", file, line, err)
		}
		if k := slices.IndexFunc(kept, func(x row) bool { return x.Workload == r.Workload }); k >= 0 {
			r = kept[k]
		}
		if r.Human > 0 {
			// The reference of a search that has been recorded again is another one.
			was := reference(r.Scratch)
			if err := r.recorded(); err != nil {
				return nil, err
			}
			if reference(r.Scratch) != was {
				r.TunedSeeds = 0
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// judgeEach judges the rows that are wanted and has, behind each, all rows kept of which
// something is known: a run that stops has lost none that was there before.
func judgeEach(rows []row, wanted func(*row) bool, judge func(*row) error, keep func([]row) error) error {
	known := func() []row { return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.Human == 0 }) }
	for i := range rows {
		r := &rows[i]
		if !wanted(r) {
			continue
		}
		if err := judge(r); err != nil {
			return fmt.Errorf("%s: %w", r.Workload, err)
		}
		if err := keep(known()); err != nil {
			return err
		}
	}
	return keep(known())
}

// family returns the family of r's graph.
func (r *row) family() string { return strings.TrimRight(r.Workload, "0123456789") }

func workloadsOf(rows []row) (names []string) {
	for i := range rows {
		names = append(names, rows[i].Workload)
	}
	return names
}

// chosen says of each of names whether only, names separated by commas, has it; an empty one
// has all. The error is about a name that is none of names.
func chosen(only string, names []string) (func(name string) bool, error) {
	if only == "" {
		return func(string) bool { return true }, nil
	}
	asked := strings.Split(only, ",")
	for _, name := range asked {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("-rows %q: want some of %s", name, strings.Join(names, ", "))
		}
	}
	return func(name string) bool { return slices.Contains(asked, name) }, nil
}
