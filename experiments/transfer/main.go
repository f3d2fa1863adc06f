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
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"placer/baselines/human"
	"placer/internal/fsx"
	"placer/placer/transfer"
	"placer/plan"
)

// row is a line of results.csv. Times are in seconds, reductions against the
// human expert.
type row struct {
	Workload string
	Devices  int
	Policy   string
	Human    float64
	Search   float64 // recorded, experiments/table2
	Longer   float64 // the search of five minutes, experiments/table2/five-minutes
	Greedy   float64
	// Of the best of 16 samples: the median over the seeds, the lowest, the highest.
	Best, BestLow, BestHigh float64
	// Of fine-tuning: median over the seeds, the lowest, the highest; CPU seconds of
	// all threads and evaluations of one seed, the most of all.
	Tuned, TunedLow, TunedHigh float64
	TunedSeeds                 float64
	TunedTook                  float64
	TunedEvaluations           float64
	Took                       float64 // zero-shot: CPU seconds of columns, 16 samples and their evaluation
	Distance, Reach            float64
	// Scratch is what the policy that was trained from scratch came to in the recorded
	// search.
	Scratch, ScratchEvaluations float64
	SameAt                      float64 // evaluations at which fine-tuning was as good, median over the seeds; 0: it was not
	Untrained                   float64 // zero-shot of a policy that knows nothing but its guides, the median over the seeds
}

func main() {
	seeds := flag.Int("seeds", 6, "seeds of sampling")
	tune := flag.Int("tune", 49, "steps of fine-tuning; 0 leaves it out")
	out := flag.String("o", "experiments/transfer", "folder of results")
	tuneSeeds := flag.Int("tune-seeds", 3, "seeds of fine-tuning")
	samples := flag.Int("samples", 0, "placements of a step of fine-tuning; 0 chooses by the graph")
	card := flag.String("card", "", "write this policy, with the results in the folder on its card, to the file that -to names, and judge nothing")
	to := flag.String("to", "placer/pretrained/policy.safetensors", "see -card")
	only := flag.String("rows", "", "rows to judge, separated by commas; all without it")
	flag.Parse()
	if *card != "" {
		if err := writeCard(*out, *card, *to); err != nil {
			fmt.Fprintln(os.Stderr, "transfer:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(*seeds, tuning{*tune, *tuneSeeds, *samples}, *out, *only, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "transfer:", err)
		os.Exit(1)
	}
}

// tuning says how to fine-tune.
type tuning struct{ steps, seeds, samples int }

func run(seeds int, tune tuning, out, only string, files []string) error {
	policies := map[string]*transfer.Policy{} // by held-out family
	names := map[string]string{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		p, err := transfer.Read(data, f)
		if err != nil {
			return err
		}
		for _, h := range p.Card.HeldOut {
			policies[h], names[h] = p, filepath.Base(f)
		}
	}
	cases, err := os.ReadFile("experiments/table2/rows.tsv")
	if err != nil {
		return err
	}
	kept, err := readRows(out)
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

// columns are those of results.csv behind the workload, the devices and the
// policy.
var columns = []string{"human_s", "search_s", "greedy_s", "best_of_16_s", "best_of_16_low_s", "best_of_16_high_s", "fine_tuned_s", "fine_tuned_cpu_seconds", "zero_shot_cpu_seconds",
	"distance", "reach", "from_scratch_s", "fine_tuned_evaluations", "from_scratch_evaluations", "same_at",
	"fine_tuned_low_s", "fine_tuned_high_s", "fine_tuned_seeds", "untrained_s", "search_five_minutes_s"}

// values returns where columns are kept.
func (r *row) values() []*float64 {
	return []*float64{&r.Human, &r.Search, &r.Greedy, &r.Best, &r.BestLow, &r.BestHigh, &r.Tuned, &r.TunedTook, &r.Took, &r.Distance, &r.Reach, &r.Scratch, &r.TunedEvaluations, &r.ScratchEvaluations, &r.SameAt,
		&r.TunedLow, &r.TunedHigh, &r.TunedSeeds, &r.Untrained, &r.Longer}
}

// whole reports whether r has been judged.
func (r *row) whole(t tuning) bool {
	return r.Greedy > 0 && (t.steps == 0 || r.TunedSeeds >= float64(t.seeds))
}

// readCSV returns the lines of a file, none where there is no file.
func readCSV(path string) ([][]string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return csv.NewReader(bytes.NewReader(data)).ReadAll()
}

// readRows returns the rows of folder's results.csv, none where there is no file.
func readRows(folder string) ([]row, error) {
	lines, err := readCSV(filepath.Join(folder, "results.csv"))
	if err != nil || len(lines) == 0 {
		return nil, err
	}
	var rows []row
	for _, l := range lines[1:] {
		r := row{Workload: l[0], Policy: l[2]}
		if r.Devices, err = strconv.Atoi(l[1]); err != nil {
			return nil, err
		}
		for k, v := range r.values() {
			at := slices.Index(lines[0], columns[k])
			if at < 0 {
				continue // it is judged anew
			}
			if *v, err = strconv.ParseFloat(l[at], 64); err != nil {
				return nil, err
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// writeCard writes policy file from to file to with the results of folder: what
// the same training came to where a family was held out.
func writeCard(folder, from, to string) error {
	rows, err := readRows(folder)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	p, err := transfer.Read(data, from)
	if err != nil {
		return err
	}
	p.Card.Results = nil
	for _, r := range rows {
		x := transfer.Result{Workload: r.Workload, Devices: r.Devices, HeldOut: true, Greedy: 1 - r.Greedy/r.Human, Best: 1 - r.Best/r.Human}
		if r.TunedSeeds > 0 {
			x.Tuned = 1 - r.Tuned/r.Human
		}
		p.Card.Results = append(p.Card.Results, x)
	}
	return fsx.WriteFile(to, p.Write)
}

func percent(x, human float64) float64 { return 100 * (1 - x/human) }

// judge fills what r has not got; folder holds tuned.csv.
func (r *row) judge(policy *transfer.Policy, seeds int, tune tuning, folder string) error {
	p, err := transfer.Case{Workload: r.Workload, GPU: "p100", Devices: r.Devices}.Problem()
	if err != nil {
		return err
	}
	ctx := context.Background()
	h, err := human.Placer{}.Place(ctx, p)
	if err != nil {
		return err
	}
	r.Human = h.Score.Seconds
	if err := r.recorded(); err != nil {
		return err
	}
	if r.Greedy == 0 {
		if err := r.zeroShot(ctx, p, policy, seeds); err != nil {
			return err
		}
	}
	if tune.steps == 0 || r.TunedSeeds >= float64(tune.seeds) {
		return nil
	}
	return r.fineTuned(ctx, p, policy, tune, folder)
}

// zeroShot fills what is said of the policy as it is.
func (r *row) zeroShot(ctx context.Context, p *plan.Problem, policy *transfer.Policy, seeds int) error {
	untrained, err := transfer.NewPolicy(transfer.DefaultConfig(), rand.New(rand.NewPCG(1, 0)))
	if err != nil {
		return err
	}
	var best, without []float64
	for k := range seeds {
		p.Seed = uint64(k + 1)
		begin := cpu()
		w, err := transfer.NewView(p)
		if err != nil {
			return err
		}
		samples, err := policy.ZeroShot(ctx, w, transfer.DefaultSamples)
		if err != nil {
			return err
		}
		if k == 0 {
			r.Took = cpu() - begin
			r.Greedy = seconds(samples[0].Score)
			r.Distance, r.Reach = policy.Reach.Distance(w), policy.Reach.Limit
		}
		best = append(best, seconds(transfer.Best(samples).Score))
		if samples, err = untrained.ZeroShot(ctx, w, transfer.DefaultSamples); err != nil {
			return err
		}
		without = append(without, seconds(transfer.Best(samples).Score))
	}
	r.Best, r.BestLow, r.BestHigh = spread(best)
	r.Untrained, _, _ = spread(without)
	return nil
}

// spread returns the median of x, the lowest and the highest.
func spread(x []float64) (median, low, high float64) {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2, x[0], x[len(x)-1]
}

// cpu returns the processor time of this process, in seconds: what else the
// machine does is not the policy's doing.
func cpu() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

// seconds is the step time, infinite where the placement does not fit.
func seconds(s plan.Score) float64 {
	if !s.Feasible() {
		return math.Inf(1)
	}
	return s.Seconds
}

// method is a row of a recorded search.
type method struct {
	Method      string  `json:"method"`
	StepTime    float64 `json:"step_time_s"`
	Evaluations int     `json:"evaluations"`
}

// readSearch returns the best of a search recorded in folder and its rows.
func (r *row) readSearch(folder string) (best float64, rows []method, err error) {
	data, err := os.ReadFile(filepath.Join(folder, r.Workload+".json"))
	if err != nil {
		return 0, nil, err
	}
	var doc struct {
		Best method   `json:"best"`
		Rows []method `json:"rows"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return 0, nil, fmt.Errorf("%s: %s: %w", folder, r.Workload, err)
	}
	return doc.Best.StepTime, doc.Rows, nil
}

// searched takes the best of the recorded searches; that of five minutes may lack.
func (r *row) searched() (err error) {
	if r.Search, _, err = r.readSearch("experiments/table2"); err != nil {
		return err
	}
	r.Longer, _, err = r.readSearch("experiments/table2/five-minutes")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// recorded takes the recorded searches: their best, and of the one of two minutes
// the policy that was trained from scratch.
func (r *row) recorded() error {
	if err := r.searched(); err != nil {
		return err
	}
	_, rows, err := r.readSearch("experiments/table2")
	if err != nil {
		return err
	}
	for _, m := range rows {
		if m.Method == "GO-one" {
			r.Scratch, r.ScratchEvaluations = m.StepTime, float64(m.Evaluations)
		}
	}
	return nil
}
