// Command guided anneals the rows of table 2 by chance and under a network of moves that
// did not see their family, in turns, within equal processor time on one core. A row of
// runs.tsv is one such search; what has a row is left out. It prints the table.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"placer/baselines/rules"
	"placer/baselines/search/anneal"
	"placer/hw"
	"placer/placer/policy/proposer"
	"placer/placer/problem"
	"placer/plan"
	"placer/workloads"
)

// Ways of choosing moves.
const (
	chance = "chance"
	guided = "guided"
)

// run is a line of runs.tsv. Times are in seconds.
type run struct {
	graph       string
	budget      float64 // processor time
	seed        int
	how         string
	step, human float64
	evaluations int
	spent       float64 // processor time, with the last evaluation
}

func (r *run) key() string { return fmt.Sprintf("%s\t%g\t%d\t%s", r.graph, r.budget, r.seed, r.how) }

func main() {
	seconds := flag.String("seconds", "1,5", "processor time of a search")
	seeds := flag.Int("seeds", 6, "seeds")
	only := flag.String("rows", "", "graphs, separated by commas; all without it")
	out := flag.String("o", "experiments/guided", "folder of runs.tsv and table.md")
	flag.Parse()
	if err := guide(*seconds, *seeds, *only, *out); err != nil {
		fmt.Fprintln(os.Stderr, "guided:", err)
		os.Exit(1)
	}
}

func guide(seconds string, seeds int, only, out string) error {
	path := filepath.Join(out, "runs.tsv")
	runs, err := read(path)
	if err != nil {
		return err
	}
	done := map[string]bool{}
	for k := range runs {
		done[runs[k].key()] = true
	}
	rows, err := os.ReadFile("experiments/table2/rows.tsv")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	for seed := 1; seed <= seeds; seed++ {
		for _, budget := range strings.Split(seconds, ",") {
			for _, line := range strings.Split(strings.TrimSpace(string(rows)), "\n") {
				r := run{seed: seed}
				devices := 0
				if _, err := fmt.Sscan(line+" "+budget, &r.graph, &devices, &r.budget); err != nil {
					return err
				}
				if only != "" && !slices.Contains(strings.Split(only, ","), r.graph) {
					continue
				}
				for _, r.how = range []string{chance, guided} {
					if done[r.key()] {
						continue
					}
					x := r
					if err := x.search(devices); err != nil {
						return fmt.Errorf("%s: %w", r.graph, err)
					}
					runs = append(runs, x)
					if _, err := fmt.Fprintf(f, "%s\t%.6g\t%.6g\t%d\t%.2f\n", x.key(), x.step, x.human, x.evaluations, x.spent); err != nil {
						return err
					}
				}
			}
		}
	}
	table := summary(runs)
	fmt.Print(table)
	return os.WriteFile(filepath.Join(out, "table.md"), []byte(table), 0o644)
}

// read returns the lines of runs.tsv, none where there is no file.
func read(path string) (runs []run, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r run
		if _, err := fmt.Sscan(lines.Text(), &r.graph, &r.budget, &r.seed, &r.how, &r.step, &r.human, &r.evaluations, &r.spent); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", path, lines.Text(), err)
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// search anneals r's graph.
func (r *run) search(devices int) error {
	g, err := workloads.Build(r.graph)
	if err != nil {
		return err
	}
	m, err := hw.Take("p100", devices, false)
	if err != nil {
		return err
	}
	p, err := problem.New(problem.Source{Graph: g}, m, problem.Options{})
	if err != nil {
		return err
	}
	expert, err := rules.Expert().Place(context.Background(), &p.Problem)
	if err != nil {
		return err
	}
	a := anneal.Placer{Workers: 1}
	if r.how == guided {
		family := strings.TrimRight(r.graph, "0123456789")
		path := fmt.Sprintf("experiments/guided/networks/without-%s.safetensors", family)
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n, err := proposer.Read(data, path)
		if err != nil {
			return err
		}
		if !slices.Contains(n.Card.HeldOut, family) {
			return fmt.Errorf("%s has seen %s", path, family)
		}
		a.Guide = n
	}
	q := p.Problem
	start := processor()
	q.Clock = func() float64 { return processor() - start }
	q.Budget, q.Seed = plan.Budget{Seconds: r.budget}, uint64(r.seed)
	o, err := a.Place(context.Background(), &q)
	if err != nil {
		return err
	}
	r.step, r.human, r.evaluations, r.spent = o.Score.Value, expert.Score.Value, o.Evaluations, processor()-start
	return nil
}

// processor returns the processor time that the program has used, in seconds.
func processor() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Sec+u.Stime.Sec) + 1e-6*float64(u.Utime.Usec+u.Stime.Usec)
}

// summary returns a table of medians: what is under the expert, and by how much guided
// searches end shorter.
func summary(runs []run) string {
	type cell struct {
		graph  string
		budget float64
	}
	steps := map[cell]map[string][]float64{}
	var graphs []string
	var budgets []float64
	human := map[string]float64{}
	for k := range runs {
		r := &runs[k]
		c := cell{r.graph, r.budget}
		if steps[c] == nil {
			steps[c] = map[string][]float64{}
		}
		steps[c][r.how] = append(steps[c][r.how], r.step)
		human[r.graph] = r.human
		if !slices.Contains(graphs, r.graph) {
			graphs = append(graphs, r.graph)
		}
		if !slices.Contains(budgets, r.budget) {
			budgets = append(budgets, r.budget)
		}
	}
	slices.Sort(budgets)
	var b strings.Builder
	head, rule := "| graph |", "|---|"
	for _, s := range budgets {
		head += fmt.Sprintf(" chance, %g CPU s | guided | step shorter by | seeds |", s)
		rule += "---|---|---|---|"
	}
	fmt.Fprintf(&b, "%s\n%s\n", head, rule)
	logs := map[float64]map[string]float64{}
	count := map[float64]int{}
	for _, g := range graphs {
		fmt.Fprintf(&b, "| %s |", g)
		for _, s := range budgets {
			x := steps[cell{g, s}]
			n := min(len(x[chance]), len(x[guided]))
			if n == 0 {
				b.WriteString(" - | - | - | 0 |")
				continue
			}
			plain, led := median(x[chance]), median(x[guided])
			if logs[s] == nil {
				logs[s] = map[string]float64{}
			}
			logs[s][chance] += math.Log(plain / human[g])
			logs[s][guided] += math.Log(led / human[g])
			count[s]++
			fmt.Fprintf(&b, " %.1f%% | %.1f%% | %.1f%% | %d |", 100*(1-plain/human[g]), 100*(1-led/human[g]), 100*(1-led/plain), n)
		}
		b.WriteString("\n")
	}
	b.WriteString("| geometric mean |")
	for _, s := range budgets {
		n := float64(count[s])
		plain, led := math.Exp(logs[s][chance]/n), math.Exp(logs[s][guided]/n)
		fmt.Fprintf(&b, " %.1f%% | %.1f%% | %.1f%% | %d rows |", 100*(1-plain), 100*(1-led), 100*(1-led/plain), count[s])
	}
	b.WriteString("\n")
	return b.String()
}

// median returns the middle of x, the mean of two where there are two.
func median(x []float64) float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
