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
	cases, err := os.ReadFile("experiments/table2/rows.tsv")
	if err != nil {
		return err
	}
	kept, err := readCSV[row](filepath.Join(out, resultsFile))
	if err != nil {
		return err
	}
	var rows []row
	for line := range strings.Lines(string(cases)) {
		r := row{}
		if _, err := fmt.Sscanf(line, "%s\t%d", &r.Workload, &r.Devices); err != nil {
			return fmt.Errorf("rows.tsv: %q: %w", line, err)
		}
		if k := slices.IndexFunc(kept, func(x row) bool { return x.Workload == r.Workload }); k >= 0 {
			r = kept[k]
		}
		if r.Human > 0 {
			// The reference of a search that has been recorded again is another one.
			was := reference(r.Scratch)
			if err := r.recorded(); err != nil {
				return err
			}
			if reference(r.Scratch) != was {
				r.TunedSeeds = 0
			}
		}
		if r.whole(tune) || only != "" && !slices.Contains(strings.Split(only, ","), r.Workload) {
			if r.Human > 0 {
				rows = append(rows, r)
			}
			continue
		}
		family := strings.TrimRight(r.Workload, "0123456789")
		p := policies[family]
		if p == nil {
			fmt.Fprintf(os.Stderr, "%s: no policy holds out %s\n", r.Workload, family)
			continue
		}
		r.Policy = names[family]
		if err := r.judge(p, seeds, tune, out); err != nil {
			return fmt.Errorf("%s: %w", r.Workload, err)
		}
		fmt.Fprintf(os.Stderr, "%-11s greedy %5.1f%%, best of 16 %5.1f%% (%.1f%% to %.1f%%), fine-tuned %5.1f%% in %.0f s, search %5.1f%%\n", r.Workload,
			percent(r.Greedy, r.Human), percent(r.Best, r.Human), percent(r.BestHigh, r.Human), percent(r.BestLow, r.Human), percent(r.Tuned, r.Human), r.TunedTook, percent(r.Search, r.Human))
		rows = append(rows, r)
		if err := write(out, rows); err != nil {
			return err
		}
	}
	return write(out, rows)
}
