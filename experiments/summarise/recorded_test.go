package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tables are the folders of recorded searches, with their figures.
var tables = []string{"../table2", "../table2/default", "../table2/five-minutes"}

// TestTables: every table is what its documents come to.
func TestTables(t *testing.T) {
	rows, err := os.ReadFile("../table2/rows.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range tables {
		var files []string
		for line := range strings.Lines(string(rows)) {
			name, _, _ := strings.Cut(line, "\t")
			files = append(files, filepath.Join(folder, name+".json"))
		}
		var got bytes.Buffer
		if err := run(&got, files); err != nil {
			t.Fatal(err)
		}
		if want := read(t, filepath.Join(folder, "table.md")); got.String() != want {
			t.Errorf("%s/table.md is not what its documents give:\n%s", folder, got.String())
		}
	}
}

// TestFigures: the figures of docs/results.md are those that are recorded.
func TestFigures(t *testing.T) {
	results := read(t, "../../docs/results.md")
	for line := range strings.Lines(read(t, "../table2/table.md")) {
		if !strings.Contains(results, line) {
			t.Errorf("docs/results.md lacks the line %q of table2/table.md", line)
		}
	}
	budgets := searchBudgets(t)
	five, fivePolicy := meansOf(t, "../table2/five-minutes")
	byDefault, _ := meansOf(t, "../table2/default")
	joint, moved := figure6(t), transfers(t)
	policy, chance := overHDP(t, "GO-one"), overHDP(t, "random-best")
	for _, s := range []stated{
		{`With five minutes a row the search reaches (\S+) and the policy (\S+) \(`, []string{five, fivePolicy}},
		{`by default, two minutes give (\S+) \(`, []string{byDefault}},
		{`(\S+) shorter than TensorFlow's default \((\d+) cases that fit one GPU\), (\S+) shorter than the three learned one by one in the same budget, shorter than every pair of them in all (\d+) cases, by (\S+) on average and (\S+) at the least`,
			[]string{percent(joint.standard.mean()), fmt.Sprint(len(joint.standard)), percent(joint.single.mean()), fmt.Sprint(len(joint.pair)), percent(joint.pair.mean()), percent(joint.pair.least())}},
		{`the best of these 16 samples is (\S+) shorter than the human expert's step, worse on no row, (\S+) longer than five minutes of search`, []string{percent(moved.best.mean()), percent(moved.bestLonger.mean() * -1)}},
		{`it is (\S+) shorter, (\S+) longer than five minutes of search in the mean, at the most (\S+) \(`, []string{percent(moved.tuned.mean()), percent(-moved.tunedLonger.mean()), percent(-moved.tunedLonger.least())}},
		{`as good as the policy from scratch on (\d+) of (\d+) rows \(gnmt4: (\S+)\)`, []string{fmt.Sprint(moved.soon), fmt.Sprint(len(moved.tuned)), fmt.Sprintf("%.2f", moved.latest)}},
		{`an untrained policy that has these gives steps that are ([\d.]+%) shorter`, []string{percent(moved.untrained.mean())}},
		{`six seeds: (\d+)%, (\d+)% and (\d+)% shorter on rnnlm2, gnmt2 and inception`, policy},
		{"random placements \\(`random-best`\\) is (\\d+)% and (\\d+)% shorter and (\\d+)% longer", chance},
		{`the search reaches (\S+) after 1 s, (\S+) after 10 s and (\S+) after two minutes, medians of six seeds`, budgets},
	} {
		s.check(t, "docs/results.md", results)
	}
	if least := joint.pair.least(); least <= 0 {
		t.Errorf("jointly, a case is %.1f%% behind a pair of tasks", -100*least)
	}
	if least := moved.best.least(); least < 0 {
		t.Errorf("zero-shot, a row is %.1f%% below the human expert", 100*least)
	}
}

// meansOf returns the mean reductions of the search and of the policy in a folder of tables.
func meansOf(t *testing.T, folder string) (search, policy string) {
	lines := strings.Split(strings.TrimSpace(read(t, folder+"/table.md")), "\n")
	cells := strings.Split(lines[len(lines)-1], "|")
	return strings.TrimSpace(cells[7]), strings.TrimSpace(cells[9])
}

// searchBudgets returns the mean reductions after 1 s, 10 s and two minutes.
func searchBudgets(t *testing.T) (all []string) {
	for _, x := range regexp.MustCompile(`([\d.]+%) of 14 rows`).FindAllStringSubmatch(read(t, "../search-budget/table.md"), -1) {
		all = append(all, x[1])
	}
	if len(all) != 3 {
		t.Fatalf("search-budget/table.md has means of %d budgets, want 3", len(all))
	}
	return all
}

// overHDP returns by how many percent method's median step is shorter than HDP's, or longer,
// on each graph.
func overHDP(t *testing.T, method string) (all []string) {
	var doc struct {
		Rows []struct {
			Method    string  `json:"method"`
			Reduction float64 `json:"reduction"`
		} `json:"rows"`
	}
	if err := json.Unmarshal([]byte(read(t, "../go-hdp/compare.json")), &doc); err != nil {
		t.Fatal(err)
	}
	for _, r := range doc.Rows {
		if r.Method == method {
			all = append(all, fmt.Sprintf("%.0f", 100*math.Abs(r.Reduction)))
		}
	}
	return all
}

// shares are step times over others, as reductions.
type shares []float64

func (s *shares) add(ours, theirs float64) { *s = append(*s, 1-ours/theirs) }

// mean is the reduction of the geometric mean.
func (s shares) mean() float64 {
	sum := 0.0
	for _, x := range s {
		sum += math.Log(1 - x)
	}
	return 1 - math.Exp(sum/float64(len(s)))
}

func (s shares) least() float64 { return slices.Min(s) }

func percent(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

// figure6 returns what the joint policy saves, by case: over TensorFlow's default,
// the tasks one by one, the best pair.
func figure6(t *testing.T) (x struct{ standard, single, pair shares }) {
	f, err := os.Open("../go-figure6/run/trials.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	steps := map[string]map[string][]float64{} // by case and method
	misfits := map[string]bool{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var trial struct {
			Case     string
			Method   string
			StepTime float64 `json:"step_time_s"`
			Overflow int64   `json:"overflow_bytes"`
		}
		if err := json.Unmarshal(lines.Bytes(), &trial); err != nil {
			t.Fatal(err)
		}
		if steps[trial.Case] == nil {
			steps[trial.Case] = map[string][]float64{}
		}
		steps[trial.Case][trial.Method] = append(steps[trial.Case][trial.Method], trial.StepTime)
		if trial.Overflow > 0 {
			misfits[trial.Case+trial.Method] = true
		}
	}
	for name, methods := range steps {
		of := func(method string) float64 {
			s := slices.Clone(methods[method])
			slices.Sort(s)
			return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
		}
		joint := of("place+schedule+fuse")
		if !misfits[name+"tf-default"] {
			x.standard.add(joint, of("tf-default"))
		}
		x.single.add(joint, of("place|schedule|fuse"))
		x.pair.add(joint, min(of("place+schedule"), of("place+fuse"), of("schedule+fuse")))
	}
	return x
}

// transfers returns what policies that never saw a row's family save on it, and, as policies
// without an encoder were recorded, on how many rows fine-tuning is as good as a policy from
// scratch within a tenth of its evaluations, and the largest part that it takes.
func transfers(t *testing.T) (x struct {
	best, direct, bestLonger, tuned, tunedLonger, untrained shares
	soon                                                    int
	latest                                                  float64
}) {
	for _, l := range transferRows(t, "../transfer") {
		of := func(column string) float64 { return mustParse(t, l[column]) }
		human := of("human_s")
		x.best.add(of("best_of_16_s"), human)
		x.direct.add(of("direct_16_s"), human)
		x.bestLonger.add(of("best_of_16_s"), of("search_five_minutes_s"))
		x.untrained.add(of("untrained_s"), human)
	}
	for _, l := range transferRows(t, "../transfer/without-encoder") {
		of := func(column string) float64 { return mustParse(t, l[column]) }
		x.tuned.add(of("fine_tuned_s"), of("human_s"))
		x.tunedLonger.add(of("fine_tuned_s"), of("search_five_minutes_s"))
		part := math.Inf(1)
		if at := of("same_at"); at > 0 {
			part = at / of("from_scratch_evaluations")
		}
		if x.latest = max(x.latest, part); part <= 0.1 {
			x.soon++
		}
	}
	return x
}

// transferRows returns the lines of a folder's transfer table by column.
func transferRows(t *testing.T, folder string) (rows []map[string]string) {
	lines, err := csv.NewReader(strings.NewReader(read(t, folder+"/results.csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines[1:] {
		row := map[string]string{}
		for k, name := range lines[0] {
			row[name] = l[k]
		}
		rows = append(rows, row)
	}
	return rows
}

func read(t *testing.T, path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
