// Command transfer judges policies on families that they were not trained on: the
// 14 rows of GO's table 2, zero-shot (greedy and best of 16 samples, over several
// seeds of sampling) and fine-tuned with fewer than 50 steps of PPO, beside the
// human expert and the recorded search.
//
//	transfer -seeds 6 -o experiments/transfer POLICY...
//
// A row is judged by the policy whose held-out families hold its family.
package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"placer/baselines/human"
	"placer/internal/fsx"
	"placer/placer/transfer"
	"placer/plan"
)

// row is a line of results.csv. Times are in seconds, reductions against the
// human expert.
type row struct {
	Workload  string  `json:"workload"`
	Devices   int     `json:"devices"`
	Policy    string  `json:"policy"`
	Human     float64 `json:"human_s"`
	Search    float64 `json:"search_s"` // recorded, experiments/table2
	Greedy    float64 `json:"greedy_s"`
	Best      float64 `json:"best_of_16_s"` // median over the seeds
	BestLow   float64 `json:"best_of_16_low_s"`
	BestHigh  float64 `json:"best_of_16_high_s"`
	Tuned     float64 `json:"fine_tuned_s"`
	TunedTook float64 `json:"fine_tuned_seconds"`
	Took      float64 `json:"zero_shot_cpu_seconds"` // features, 16 samples, 16 evaluations; one thread
	Distance  float64 `json:"distance"`
	Reach     float64 `json:"reach"`
}

func main() {
	seeds := flag.Int("seeds", 6, "seeds of sampling")
	tune := flag.Int("tune", 49, "steps of fine-tuning; 0 leaves it out")
	out := flag.String("o", "experiments/transfer", "folder of results")
	only := flag.String("rows", "", "rows to judge, separated by commas; all without it")
	flag.Parse()
	if err := run(*seeds, *tune, *out, *only, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "transfer:", err)
		os.Exit(1)
	}
}

func run(seeds, tune int, out, only string, files []string) error {
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
	var rows []row
	for line := range strings.Lines(string(cases)) {
		r := row{}
		if _, err := fmt.Sscanf(line, "%s\t%d", &r.Workload, &r.Devices); err != nil {
			return fmt.Errorf("rows.tsv: %q: %w", line, err)
		}
		if only != "" && !slices.Contains(strings.Split(only, ","), r.Workload) {
			continue
		}
		family := strings.TrimRight(r.Workload, "0123456789")
		p := policies[family]
		if p == nil {
			fmt.Fprintf(os.Stderr, "%s: no policy holds out %s\n", r.Workload, family)
			continue
		}
		r.Policy = names[family]
		if err := r.judge(p, seeds, tune); err != nil {
			return fmt.Errorf("%s: %w", r.Workload, err)
		}
		fmt.Fprintf(os.Stderr, "%-11s greedy %5.1f%%, best of 16 %5.1f%% (%.1f%% to %.1f%%), fine-tuned %5.1f%% in %.0f s, search %5.1f%%\n", r.Workload,
			percent(r.Greedy, r.Human), percent(r.Best, r.Human), percent(r.BestHigh, r.Human), percent(r.BestLow, r.Human), percent(r.Tuned, r.Human), r.TunedTook, percent(r.Search, r.Human))
		rows = append(rows, r)
	}
	return write(out, rows)
}

func percent(x, human float64) float64 { return 100 * (1 - x/human) }

// judge fills r.
func (r *row) judge(policy *transfer.Policy, seeds, tune int) error {
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
	if r.Search, err = recorded(r.Workload); err != nil {
		return err
	}
	var best []float64
	for k := range seeds {
		p.Seed = uint64(k + 1)
		begin := time.Now()
		w, err := transfer.NewView(p)
		if err != nil {
			return err
		}
		samples, err := policy.ZeroShot(ctx, w, transfer.DefaultSamples)
		if err != nil {
			return err
		}
		if k == 0 {
			r.Took = time.Since(begin).Seconds()
			r.Greedy = seconds(samples[0].Score)
			r.Distance, r.Reach = policy.Reach.Distance(w), policy.Reach.Limit
		}
		best = append(best, seconds(transfer.Best(samples).Score))
	}
	slices.Sort(best)
	r.Best, r.BestLow, r.BestHigh = (best[(len(best)-1)/2]+best[len(best)/2])/2, best[0], best[len(best)-1]
	if tune == 0 {
		return nil
	}
	p.Seed = 1
	c := transfer.DefaultTune()
	c.Steps = tune
	begin := time.Now()
	p.Clock = func() float64 { return time.Since(begin).Seconds() }
	p.Budget = plan.Budget{Seconds: 60}
	if p.Graph.NumOps() > 10400 {
		p.Budget.Seconds = 300
	}
	o, err := transfer.Tuner{Policy: policy, Config: c}.Place(ctx, p)
	if err != nil {
		return err
	}
	r.Tuned, r.TunedTook = seconds(o.Score), p.Clock()
	return nil
}

// seconds is the step time, infinite where the placement does not fit.
func seconds(s plan.Score) float64 {
	if !s.Feasible() {
		return math.Inf(1)
	}
	return s.Seconds
}

// recorded returns the step time of the recorded search.
func recorded(workload string) (float64, error) {
	data, err := os.ReadFile("experiments/table2/" + workload + ".json")
	if err != nil {
		return 0, err
	}
	var doc struct {
		Best struct {
			StepTime float64 `json:"step_time_s"`
		} `json:"best"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return 0, err
	}
	return doc.Best.StepTime, nil
}

// write writes results.csv and table.md.
func write(folder string, rows []row) error {
	if err := fsx.WriteFile(filepath.Join(folder, "results.csv"), func(w io.Writer) error {
		c := csv.NewWriter(w)
		c.Write([]string{"workload", "devices", "policy", "human_s", "search_s", "greedy_s", "best_of_16_s", "best_of_16_low_s", "best_of_16_high_s", "fine_tuned_s", "fine_tuned_seconds", "zero_shot_seconds", "distance", "reach"})
		for _, r := range rows {
			record := []string{r.Workload, fmt.Sprint(r.Devices), r.Policy}
			for _, x := range []float64{r.Human, r.Search, r.Greedy, r.Best, r.BestLow, r.BestHigh, r.Tuned, r.TunedTook, r.Took, r.Distance, r.Reach} {
				record = append(record, fmt.Sprintf("%.6g", x))
			}
			c.Write(record)
		}
		c.Flush()
		return c.Error()
	}); err != nil {
		return err
	}
	return fsx.WriteFile(filepath.Join(folder, "table.md"), func(w io.Writer) error {
		fmt.Fprintln(w, "| graph | GPUs | human | greedy | best of 16 | lowest to highest of the seeds | fine-tuned | seconds | search | distance / reach |")
		fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|")
		var g, b, t, s float64
		for _, r := range rows {
			fmt.Fprintf(w, "| %s | %d | %.4g ms | %.1f%% | %.1f%% | %.1f%% to %.1f%% | %.1f%% | %.0f | %.1f%% | %.2f / %.2f |\n", r.Workload, r.Devices, 1e3*r.Human,
				percent(r.Greedy, r.Human), percent(r.Best, r.Human), percent(r.BestHigh, r.Human), percent(r.BestLow, r.Human), percent(r.Tuned, r.Human), r.TunedTook, percent(r.Search, r.Human), r.Distance, r.Reach)
			n := float64(len(rows))
			g += math.Log(r.Greedy/r.Human) / n
			b += math.Log(r.Best/r.Human) / n
			t += math.Log(r.Tuned/r.Human) / n
			s += math.Log(r.Search/r.Human) / n
		}
		_, err := fmt.Fprintf(w, "| geometric mean | | | %.1f%% | %.1f%% | | %.1f%% | | %.1f%% | |\n", 100*(1-math.Exp(g)), 100*(1-math.Exp(b)), 100*(1-math.Exp(t)), 100*(1-math.Exp(s)))
		return err
	})
}
