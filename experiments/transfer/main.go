// Command transfer judges policies on families that they were not trained on: the
// 14 rows of GO's table 2, zero-shot (greedy and best of 16 samples, over several
// seeds of sampling) and fine-tuned in fewer than 50 steps, beside the human expert
// and the recorded search.
//
//	transfer -seeds 6 -o experiments/transfer POLICY...
//
// A row is judged by the policy whose held-out families hold its family. What
// results.csv has of a row is kept, zero-shot and fine-tuned each on its own, and
// so is every seed of fine-tuning in tuned.csv: a stopped run goes on, one with
// more seeds adds them, and where the fine_tuned columns are taken out, and the
// row's lines in tuned.csv, they alone are judged anew.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"placer/baselines/rules"
	"placer/internal/fsx"
	"placer/placer/policy/sequential"
)

func main() {
	seeds := flag.Int("seeds", 6, "seeds of sampling")
	tune := flag.Int("tune", 49, "steps of fine-tuning; 0 leaves it out")
	out := flag.String("o", "experiments/transfer", "folder of results")
	tuneSeeds := flag.Int("tune-seeds", 3, "seeds of fine-tuning")
	samples := flag.Int("samples", 0, "placements of a step of fine-tuning; 0 chooses by the graph")
	card := flag.String("card", "", "write this policy, with the results in the folder on its card, to the file that -to names, and judge nothing")
	to := flag.String("to", "placer/pretrained/policy.safetensors", "see -card")
	only := flag.String("rows", "", "rows to judge, separated by commas; all without it")
	tasks := flag.Bool("tasks", false, "judge all three tasks, zero-shot, on the cases of GO's figure 6, into tasks.csv and tasks.md, and nothing else")
	propose := flag.Bool("propose", false, "choose the proposals of the policy files anew, on graphs of the families that each knows, write them into the files, and nothing else")
	untrained := flag.Int("untrained", 0, "seeds of fine-tuning that begins with an untrained network, into untrained.csv and untrained.md, and nothing else")
	equal := flag.Bool("equal", false, "place the graphs of graphs.tsv in the folder zero-shot and anneal them in as much processor time, into runs.csv and table.md, and nothing else")
	ablation := flag.Bool("ablation", false, "judge policies in folders VARIANT-SEED, with parts of the network left out, into runs.csv and table.md, and nothing else")
	curve := flag.Bool("curve", false, "judge policies in folders PROBLEMSxWIDTH-SEED, into runs.csv and table.md, and nothing else")
	ppo := flag.Int("ppo", 0, "seeds of fine-tuning through the network, on the rows of results.csv, into ppo.csv and ppo.md, and nothing else")
	flag.Parse()
	err := error(nil)
	if *ppo > 0 {
		var policies map[string]*sequential.Policy
		if policies, _, err = readPolicies(flag.Args()); err == nil {
			err = judgePPO(policies, "experiments/transfer", *out, *only, *ppo)
		}
	} else if *ablation {
		err = judgeVariants(flag.Args(), *out, writeAblation)
	} else if *curve {
		err = judgeVariants(flag.Args(), *out, writeCurve)
	} else if *equal {
		var policies map[string]*sequential.Policy
		if policies, _, err = readPolicies(flag.Args()); err == nil {
			err = judgeEqual(policies, *out, *only, *seeds)
		}
	} else if *propose {
		for _, f := range flag.Args() {
			if err = proposeFor(f); err != nil {
				break
			}
		}
	} else if *untrained > 0 {
		err = judgeUntrained(*out, *only, *untrained)
	} else if *tasks {
		var policies map[string]*sequential.Policy
		if policies, _, err = readPolicies(flag.Args()); err == nil {
			err = judgeTasks(policies, *out)
		}
	} else if *card != "" {
		err = writeCard(*out, *card, *to)
	} else {
		err = run(*seeds, tuning{*tune, *tuneSeeds, *samples}, *out, *only, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "transfer:", err)
		os.Exit(1)
	}
}

// Files of the folder of results.
const (
	resultsFile = "results.csv"
	tunedFile   = "tuned.csv"
	tableFile   = "table.md"
)

// tuning says how to fine-tune.
type tuning struct{ steps, seeds, samples int }

// readPolicies reads policy files and returns the policies, and the names of their
// files, by the families that they do not know.
func readPolicies(files []string) (policies map[string]*sequential.Policy, names map[string]string, err error) {
	policies, names = map[string]*sequential.Policy{}, map[string]string{}
	for _, f := range files {
		p, err := readPolicy(f)
		if err != nil {
			return nil, nil, err
		}
		for _, h := range p.Card.HeldOut {
			policies[h], names[h] = p, filepath.Base(f)
		}
	}
	return policies, names, nil
}

func run(seeds int, tune tuning, out, only string, files []string) error {
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

// readPolicy reads the policy file at path.
func readPolicy(path string) (*sequential.Policy, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return sequential.Read(data, path)
}

// proposeFor chooses the proposals of a policy file.
func proposeFor(path string) error {
	p, err := readPolicy(path)
	if err != nil {
		return err
	}
	c := sequential.DefaultPretrain()
	c.HeldOut = p.Card.HeldOut
	if err := p.Propose(context.Background(), c, rules.Expert()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return fsx.WriteFile(path, p.Write)
}

// writeCard writes policy file from to file to with the results of folder: what
// the same training came to where a family was held out.
func writeCard(folder, from, to string) error {
	rows, err := readCSV[row](filepath.Join(folder, resultsFile))
	if err != nil {
		return err
	}
	p, err := readPolicy(from)
	if err != nil {
		return err
	}
	p.Card.Results = nil
	for _, r := range rows {
		x := sequential.Result{Workload: r.Workload, Devices: r.Devices, HeldOut: true, Greedy: 1 - r.Greedy/r.Human, Best: 1 - r.Best/r.Human}
		if r.TunedSeeds > 0 {
			x.Tuned = 1 - r.Tuned/r.Human
		}
		p.Card.Results = append(p.Card.Results, x)
	}
	return fsx.WriteFile(to, p.Write)
}
