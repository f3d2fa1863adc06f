package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// stated is a sentence with figures and what is recorded for them.
type stated struct {
	pattern string // with a group for each figure
	want    []string
}

// check holds the figures of text to what is recorded and returns where in text they stand.
func (s stated) check(t *testing.T, name, text string) (at [][2]int) {
	t.Helper()
	m := regexp.MustCompile(s.pattern).FindStringSubmatchIndex(text)
	if m == nil {
		t.Errorf("%s has nothing like %q", name, s.pattern)
		return nil
	}
	if len(m) != 2*len(s.want)+2 {
		t.Fatalf("%q has %d figures, %d are recorded", s.pattern, len(m)/2-1, len(s.want))
	}
	for k, want := range s.want {
		span := [2]int{m[2*k+2], m[2*k+3]}
		if got := text[span[0]:span[1]]; got != want {
			t.Errorf("%s says %q for figure %d of %q, recorded is %q", name, got, k+1, s.pattern, want)
		}
		at = append(at, span)
	}
	return at
}

// names are what has digits in README.md without being a figure.
var names = regexp.MustCompile("1 - step time|NeurIPS 2020|ICLR 20(18|20)|table 2|H100|B200|H200|A100|`[^`]*`|\\]\\([^)]*\\)")

// TestReadmeFigures: every figure below "What it shows" in README.md is the recorded one, and
// every paragraph there names the command that repeats it.
func TestReadmeFigures(t *testing.T) {
	_, text, _ := strings.Cut(read(t, "../../README.md"), "## What it shows\n")
	text, _, _ = strings.Cut(text, "\n## ")
	left := []byte(text)
	for _, s := range recorded(t) {
		for _, span := range s.check(t, "README.md", text) {
			for k := span[0]; k < span[1]; k++ {
				left[k] = ' '
			}
		}
	}
	for _, x := range regexp.MustCompile(`[^.]*\d[^.]*`).FindAllString(names.ReplaceAllString(string(left), " "), -1) {
		t.Errorf("README.md has a figure that nothing holds to a record: %q", strings.TrimSpace(x))
	}
	targets := read(t, "../../Makefile")
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "- **") || strings.HasPrefix(line, "- **Not shown yet.**") {
			continue
		}
		commands := regexp.MustCompile("`(?:[A-Z]+=\\S+ )*(make|go test) ([^`]*)`").FindAllStringSubmatch(line, -1)
		if len(commands) == 0 {
			t.Errorf("README.md names no command for %q", line)
		}
		for _, c := range commands {
			if c[1] == "make" && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(strings.Fields(c[2])[0])+`:|^\S+.* `+regexp.QuoteMeta(strings.Fields(c[2])[0])+`:`).MatchString(targets) {
				t.Errorf("README.md: the Makefile has no target for %q", c[0])
			}
		}
	}
}

// recorded returns what README.md states under "What it shows" with what is recorded.
func recorded(t *testing.T) []stated {
	policy, chance := overHDP(t, "GO-one"), overHDP(t, "random-best")
	joint, moved := figure6(t), transfers(t)
	budgets := searchBudgets(t)
	_, twoPolicy := meansOf(t, "../table2")
	rows := fmt.Sprint(strings.Count(strings.TrimSpace(read(t, "../table2/rows.tsv")), "\n") + 1)
	untrained := regexp.MustCompile(`geometric mean of (\d+) \| \| \| (\S+) \| (\S+) \|`).FindStringSubmatch(read(t, "../transfer/untrained.md"))
	wins, runs := winsOverHDP(t)
	regal := regalOver(t)
	paper := regexp.MustCompile(`(?m)^\| REGAL \| [\d.]+% \(([\d.]+)\)`).FindStringSubmatch(read(t, "../regal/README.md"))
	products := func(device, dtype string) string {
		m := regexp.MustCompile(`(?m)^\| ` + device + `[^|]*\| ` + dtype + ` products \| three-fold, unseen shapes \| \d+ \| ([\d.]+%) \|`).FindStringSubmatch(read(t, "../../docs/hardware-models.md"))
		if m == nil {
			t.Fatalf("docs/hardware-models.md has no error of %s", device)
		}
		return m[1]
	}
	speed := regexp.MustCompile(`no allocation: (\d+)\.\d M ops/s`).FindStringSubmatch(read(t, "../../docs/results.md"))
	if untrained == nil || paper == nil || speed == nil {
		t.Fatal("a table that README.md refers to has changed its form")
	}
	errors, taus := pytorch(t)
	return []stated{
		{`On the (\d+) graphs and machines of table 2`, []string{rows}},
		{`two minutes of search find steps that are (\S+) shorter than the human expert's in the geometric mean, ten seconds (\S+), one second (\S+) \(medians of six seeds`, []string{budgets[2], budgets[1], budgets[0]}},
		{`in the same two minutes on the graph at hand, finds steps that are (\S+) shorter`, []string{twoPolicy}},
		{`places these graphs (\S+) shorter than the expert, in (\S+) to (\S+) seconds of processor time; sixteen placements that are all judged are (\S+) shorter at best, in (\S+) to (\S+) seconds`,
			slices.Concat([]string{percent(moved.best.mean())}, rangeOf(t, "zero_shot_cpu_seconds"), []string{percent(moved.direct.mean())}, rangeOf(t, "direct_16_cpu_seconds"))},
		{`Fine-tuned in (\d+) steps it reaches (\S+), which is (\S+) longer than five minutes of search`, []string{"49", percent(moved.tuned.mean()), percent(-moved.tunedLonger.mean())}},
		{`begun with an untrained network it comes to (\S+) on (\d+) rows where the trained one has (\S+) \(one seed`, []string{untrained[3], untrained[1], untrained[2]}},
		{`gives steps (\S+) shorter than learning them one by one with the same budget, and shorter than learning any two of them in all (\d+) cases`, []string{percent(joint.single.mean()), fmt.Sprint(len(joint.pair))}},
		{`GO's policy finds steps that are (\d+)%, (\d+)% and (\d+)% shorter than those of HDP`, policy},
		{`on three graphs, in (\d+) of (\d+) runs`, []string{wins, runs}},
		{`The best of as many random placements is (\d+)% and (\d+)% shorter and (\d+)% longer`, chance},
		{`its policy is (\S+) better than the genetic algorithm it improves \((\S+) in the paper, ICLR 2020\), and a solver of our own is (\S+) better`, []string{regal["REGAL, no warm start"], rounded(t, paper[1]), regal["phases, quick"]}},
		{`best contiguous splits of (\S+) published instances are found, to six digits, in at most ([\d.]+) seconds each`, contiguous(t)},
		{`It simulates (\d+) million operations a second`, speed[1:]},
		{`on ([\d,]+) random cases in every test run`, []string{oracleCases(t)}},
		{`mean error on measured half-precision matrix products is (\S+) on an H100, (\S+) on a B200 and (\S+) on an A100`, []string{products("H100", "bf16"), products("B200", "bf16"), products("A100[^|]*Llama", "f16")}},
		{`(\d+) steps of systems that others tuned and measured, in training and serving, are predicted (\S+) times as long in the geometric mean, (\d+) of them within a quarter`, byClass(t, "all", 1, 2, 5)},
		{`(\d+) are of training sharded over 16 to 128 GPUs \((\S+)\)`, byClass(t, "sharded over hosts", 1, 2)},
		{`training sharded over (\d+) to (\d+) GPUs`, gpusOf(t, "sharded over hosts")},
		{`of (\d+) billion parameters in a pipeline of split products on (\d+) GPUs \(within (\d+%)\)`, []string{"175", gpusOf(t, "pipelines of split products")[0], farthest(t, "pipelines of split products")}},
		{`(\d+) to (\d+) placements each`, placements(t)},
		{`in two and four parts the plans found are (\d+%) to (\d+%) shorter than the expert's with TensorFlow's default fusion, as measured; the simulator predicts (\d+) steps of five workloads within (\S+) in the mean, and the steps of (\d) of (\d) PyTorch models within (\d+%)`, onCard(t)},
		{`Random plans of three of the workloads are predicted within (\S+) to (\S+) in the mean`, randomPlans(t)},
		{`The other three PyTorch models are predicted (\d+%) to (\d+%) too short`, tooShort(t)},
		{`predicts a step within (\S+) to (\S+) in the mean and ranks placements with Kendall's tau (\S+) to (\S+),`, slices.Concat(errors, taus)},
	}
}

// byClass returns columns of a row of the table of published steps by class.
func byClass(t *testing.T, class string, columns ...int) (figures []string) {
	t.Helper()
	m := regexp.MustCompile(`(?m)^\| ` + class + ` \|.*$`).FindString(read(t, "../published/README.md"))
	cells := strings.Split(m, "|")
	if len(cells) < 8 {
		t.Fatalf("no class %q of published steps", class)
	}
	for _, c := range columns {
		figures = append(figures, strings.TrimSpace(cells[1+c]))
	}
	return figures
}

// gpusOf returns the fewest and the most GPUs of published steps of a class.
func gpusOf(t *testing.T, class string) []string {
	t.Helper()
	var d struct {
		Rows []struct{ Name, Class string }
	}
	decode(t, "../published/rows.json", &d)
	fewest, most := math.Inf(1), 0.0
	for _, r := range d.Rows {
		if r.Class != class {
			continue
		}
		m := regexp.MustCompile(`, (\d+) A100`).FindStringSubmatch(r.Name)
		if m == nil {
			t.Fatalf("%s: how many GPUs?", r.Name)
		}
		fewest, most = min(fewest, mustParse(t, m[1])), max(most, mustParse(t, m[1]))
	}
	return []string{fmt.Sprint(fewest), fmt.Sprint(most)}
}

// farthest returns by how much a published step of a class is off at most, in whole percent.
func farthest(t *testing.T, class string) string {
	t.Helper()
	f := byClass(t, class, 3, 4)
	return fmt.Sprintf("%.0f%%", 100*max(1-mustParse(t, f[0]), mustParse(t, f[1])-1))
}

// randomPlans returns the least and the largest mean error of random plans' steps on the
// H200, by workload and number of devices.
func randomPlans(t *testing.T) []string {
	t.Helper()
	of := map[string]float64{}
	for _, file := range []string{"steps", "steps-4", "steps-gnmt2"} { // the later one counts
		var doc struct {
			Summary []struct {
				Of   string  `json:"of"`
				MAPE float64 `json:"mape"`
			} `json:"summary"`
		}
		decode(t, card+"/"+file+".json", &doc)
		for _, s := range doc.Summary {
			if strings.HasPrefix(s.Of, "random") {
				of[s.Of] = s.MAPE
			}
		}
	}
	if len(of) != 6 {
		t.Errorf("random plans are recorded of %d workloads and numbers of devices, not of six", len(of))
	}
	lo, hi := math.Inf(1), 0.0
	for _, e := range of {
		lo, hi = min(lo, e), max(hi, e)
	}
	return []string{percent(lo), percent(hi)}
}

// tooShort returns by how much the steps of PyTorch models are predicted too short at least
// and at most, of those that onCard does not count as well predicted.
func tooShort(t *testing.T) []string {
	t.Helper()
	const within = 13 // percent, as onCard has it
	var short []float64
	for _, m := range regexp.MustCompile(`(?m)^(?:\|[^|]*){5}\| \S+ ms, ([+-]\d+)% \|`).FindAllStringSubmatch(read(t, card+"/torch.md"), -1) {
		if e := mustParse(t, m[1]); math.Abs(e) > within {
			short = append(short, -e)
		}
	}
	if len(short) != 3 {
		t.Fatalf("%d PyTorch models are off by more than %d%%, not three", len(short), within)
	}
	return []string{fmt.Sprintf("%.0f%%", slices.Min(short)), fmt.Sprintf("%.0f%%", slices.Max(short))}
}

// rangeOf returns the least and the most of a column of the transfer table, to one digit, and
// whole seconds from ten on.
func rangeOf(t *testing.T, column string) []string {
	lo, hi := math.Inf(1), 0.0
	for _, row := range transferRows(t) {
		v := mustParse(t, row[column])
		lo, hi = min(lo, v), max(hi, v)
	}
	one := func(v float64) string {
		if v >= 10 {
			return fmt.Sprintf("%.0f", v)
		}
		return strconv.FormatFloat(mustParse(t, fmt.Sprintf("%.1g", v)), 'f', -1, 64)
	}
	return []string{one(lo), one(hi)}
}

func mustParse(t *testing.T, s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// rounded returns percent, which has two digits behind its point, with one.
func rounded(t *testing.T, percent string) string {
	return fmt.Sprintf("%.1f%%", mustParse(t, percent))
}

// decode reads a JSON document.
func decode(t *testing.T, path string, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, path)), to); err != nil {
		t.Fatal(err)
	}
}

// winsOverHDP returns in how many runs GO's policy is shorter than HDP's, and of how many.
func winsOverHDP(t *testing.T) (wins, runs string) {
	var doc struct {
		Trials []struct {
			Case, Method string
			Seed         int
			StepTime     float64 `json:"step_time_s"`
		} `json:"trials"`
	}
	decode(t, "../go-hdp/compare.json", &doc)
	type key struct {
		name, method string
		seed         int
	}
	steps := map[key]float64{}
	for _, x := range doc.Trials {
		steps[key{x.Case, x.Method, x.Seed}] = x.StepTime
	}
	won, all := 0, 0
	for k, v := range steps {
		if k.method != "GO-one" {
			continue
		}
		if all++; v < steps[key{k.name, "hdp", k.seed}] {
			won++
		}
	}
	return fmt.Sprint(won), fmt.Sprint(all)
}

// regalOver returns by how much each method is better than BRKGA-5K on REGAL's synthetic graphs.
func regalOver(t *testing.T) map[string]string {
	var doc struct {
		Rows []struct {
			Method      string  `json:"method"`
			Improvement float64 `json:"improvement"`
		} `json:"rows"`
	}
	decode(t, "../regal/synthetic.json", &doc)
	all := map[string]string{}
	for _, r := range doc.Rows {
		all[r.Method] = percent(r.Improvement)
	}
	return all
}

// contiguous returns how many published optima are found to six digits, and the most seconds.
func contiguous(t *testing.T) []string {
	var doc struct {
		Rows []struct {
			Published float64 `json:"published_optimum_ms"`
			Found     float64 `json:"contiguous_ms"`
			Seconds   float64 `json:"contiguous_seconds"`
		} `json:"rows"`
	}
	decode(t, "../dnn-partitioning/result.json", &doc)
	equal, most := 0, 0.0
	for _, r := range doc.Rows {
		if fmt.Sprintf("%.6g", r.Found) == fmt.Sprintf("%.6g", r.Published) {
			equal++
		}
		most = max(most, r.Seconds)
	}
	if equal != 8 {
		t.Errorf("%d of %d published optima are found, not eight", equal, len(doc.Rows))
	}
	return []string{"eight", fmt.Sprintf("%.1f", math.Ceil(most*10)/10)}
}

// oracleCases returns how many random cases the tests of package sim hold to its naive
// simulator in every run.
func oracleCases(t *testing.T) string {
	files, err := filepath.Glob("../../sim/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, f := range files {
		if strings.HasSuffix(f, "long_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`func Test\w*Oracle\(t \*testing\.T\) \{\n(?:[^}]*\n)??\tfor seed := range uint64\((\d+)\)`).FindAllStringSubmatch(read(t, f), -1) {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return fmt.Sprintf("%d,%03d", sum/1000, sum%1000)
}

// trials are the recorded PyTorch steps, by model.
func trials(t *testing.T) map[string][][2]float64 {
	f, err := os.Open("../pytorch/accuracy.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string][][2]float64{}
	for d := json.NewDecoder(f); d.More(); {
		var x struct {
			Model     string
			Predicted float64 `json:"predicted_s"`
			Measured  float64 `json:"measured_s"`
		}
		if err := d.Decode(&x); err != nil {
			t.Fatal(err)
		}
		all[x.Model] = append(all[x.Model], [2]float64{x.Predicted, x.Measured})
	}
	if len(all) != 4 {
		t.Errorf("steps of %d PyTorch models are recorded, not of four", len(all))
	}
	return all
}

// placements returns the least and the most placements of a model.
func placements(t *testing.T) []string {
	lo, hi := math.MaxInt, 0
	for _, x := range trials(t) {
		lo, hi = min(lo, len(x)), max(hi, len(x))
	}
	return []string{fmt.Sprint(lo), fmt.Sprint(hi)}
}

// pytorch returns the least and the largest mean error of a model, and the same of Kendall's
// tau between predicted and measured steps. The best by prediction must be the best measured.
func pytorch(t *testing.T) (errors, taus []string) {
	var wrong, tau []float64
	for model, x := range trials(t) {
		sum, agree, pairs := 0.0, 0, 0
		least := slices.MinFunc(x, func(a, b [2]float64) int { return cmp.Compare(a[0], b[0]) })
		for k, a := range x {
			sum += math.Abs(a[0]/a[1] - 1)
			if a[1] < least[1] {
				t.Errorf("%s: the best placement by prediction is not the best measured", model)
			}
			for _, b := range x[:k] {
				pairs++
				if (a[0] < b[0]) == (a[1] < b[1]) {
					agree++
				} else {
					agree--
				}
			}
		}
		wrong, tau = append(wrong, sum/float64(len(x))), append(tau, float64(agree)/float64(pairs))
	}
	two := func(v float64) string { return fmt.Sprintf("%.2f", v) }
	return []string{percent(slices.Min(wrong)), percent(slices.Max(wrong))}, []string{two(slices.Min(tau)), two(slices.Max(tau))}
}
