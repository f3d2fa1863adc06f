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

// names are what has digits in the pages without being a figure.
var names = regexp.MustCompile("1 - step time|NeurIPS 2020|ICLR 20(18|20)|table 2|H100|B200|H200|A100|P100|V100|`[^`]*`|\\]\\([^)]*\\)")

// TestReadmeFigures: every figure of README.md below "How accurate it is", and of
// docs/results.md below "In short", is the recorded one, and every row and paragraph there
// names the command that repeats it.
func TestReadmeFigures(t *testing.T) {
	targets := read(t, "../../Makefile")
	for _, x := range []struct {
		page, heading, line string // line begins what has to name a command
		stated              []stated
	}{
		{"README.md", "## How accurate it is\n", "| measured", readme(t)},
		{"docs/results.md", "## In short\n", "- **", recorded(t)},
	} {
		_, text, found := strings.Cut(read(t, "../../"+x.page), x.heading)
		if !found {
			t.Fatalf("%s has no heading %q", x.page, x.heading)
		}
		text, _, _ = strings.Cut(text, "\n## ")
		left := []byte(text)
		for _, s := range x.stated {
			for _, span := range s.check(t, x.page, text) {
				for k := span[0]; k < span[1]; k++ {
					left[k] = ' '
				}
			}
		}
		for _, y := range regexp.MustCompile(`[^.]*\d[^.]*`).FindAllString(names.ReplaceAllString(string(left), " "), -1) {
			t.Errorf("%s has a figure that nothing holds to a record: %q", x.page, strings.TrimSpace(y))
		}
		lines := 0
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, x.line) {
				continue
			}
			lines++
			commands := regexp.MustCompile("`(?:[A-Z]+=\\S+ )*(make|go test) ([^`]*)`").FindAllStringSubmatch(line, -1)
			if len(commands) == 0 {
				t.Errorf("%s names no command for %q", x.page, line)
			}
			for _, c := range commands {
				if c[1] == "make" && !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(strings.Fields(c[2])[0])+`:|^\S+.* `+regexp.QuoteMeta(strings.Fields(c[2])[0])+`:`).MatchString(targets) {
					t.Errorf("%s: the Makefile has no target for %q", x.page, c[0])
				}
			}
		}
		if lines < 4 {
			t.Errorf("%s has %d lines with a command: it has changed its form", x.page, lines)
		}
	}
}

// TestTrustFigures: the table of docs/trust.md is that of published steps by class.
func TestTrustFigures(t *testing.T) {
	page := read(t, "../../docs/trust.md")
	for name, class := range map[string]string{
		"training on one GPU":                       "training, one GPU",
		"inference on one GPU":                      "inference, one GPU",
		"decoding on one GPU":                       "decoding, one GPU",
		"sharded data parallel, one host":           "data parallel, sharded",
		"sharded over 2 to 16 hosts":                "sharded over hosts",
		"tensor parallel training":                  "tensor parallel training",
		"pipeline with tensor parallelism, 64 GPUs": "pipelines of split products",
		"mixture of experts, training":              "expert parallel training",
		"tensor parallel decoding":                  "tensor parallel decoding",
	} {
		f := byClass(t, class, 1, 2, 3, 4)
		if row := fmt.Sprintf("| %s | %s | %s | %s to %s |", name, f[0], f[1], f[2], f[3]); !strings.Contains(page, row) {
			t.Errorf("docs/trust.md lacks %q", row)
		}
	}
}

// readme returns what README.md states under "How accurate it is" with what is recorded.
func readme(t *testing.T) []stated {
	budgets := searchBudgets(t)
	errors, _ := pytorch(t)
	card := onCard(t)
	return []stated{
		{`predicted / published is (\S+) in the geometric mean over (\d+) steps; (\d+) are within a quarter`, byClass(t, "all", 2, 1, 5)},
		{`predicted / published is (\S+) in the geometric mean over (\d+) loads; (\d+) are within a quarter`, servingLoads(t)},
		{`mean error (\S+) to (\S+); the best plan by prediction`, errors},
		{`mean error (\S+) over (\d+) steps`, []string{card[3], card[2]}},
		{`(\d) of (\d) within (\d+%); the others`, card[4:]},
		{`are predicted (\d+%) to (\d+%) too short`, tooShort(t)},
		{`mean error (\S+) on an H100, (\S+) on a B200, (\S+) on an A100`, halfPrecision(t)},
		{`two minutes of search find simulated steps that are (\S+) shorter than a human expert's in the geometric mean, one second (\S+) \(`, []string{budgets[2], budgets[0]}},
	}
}

// halfPrecision returns the mean errors of half-precision products that docs/hardware-models.md
// states: on an H100, a B200 and an A100.
func halfPrecision(t *testing.T) (all []string) {
	page := read(t, "../../docs/hardware-models.md")
	for _, of := range [][2]string{{"H100", "bf16"}, {"B200", "bf16"}, {"A100[^|]*Llama", "f16"}} {
		m := regexp.MustCompile(`(?m)^\| ` + of[0] + `[^|]*\| ` + of[1] + ` products \| three-fold, unseen shapes \| \d+ \| ([\d.]+%) \|`).FindStringSubmatch(page)
		if m == nil {
			t.Fatalf("docs/hardware-models.md has no error of %s", of[0])
		}
		all = append(all, m[1])
	}
	return all
}

// recorded returns what docs/results.md states under "In short" with what is recorded.
func recorded(t *testing.T) []stated {
	policy, chance := overHDP(t, "GO-one"), overHDP(t, "random-best")
	joint, moved := figure6(t), transfers(t)
	budgets := searchBudgets(t)
	_, twoPolicy := meansOf(t, "../table2")
	rows := fmt.Sprint(strings.Count(strings.TrimSpace(read(t, "../table2/rows.tsv")), "\n") + 1)
	untrained := regexp.MustCompile(`geometric mean of (\d+) \| \| \| (\S+) \| (\S+) \|`).FindStringSubmatch(read(t, "../transfer/without-encoder/untrained.md"))
	wins, runs := winsOverHDP(t)
	regal := regalOver(t)
	paper := regexp.MustCompile(`(?m)^\| REGAL \| [\d.]+% \(([\d.]+)\)`).FindStringSubmatch(read(t, "../regal/README.md"))
	speed := regexp.MustCompile(`no allocation: (\d+)\.\d M ops/s`).FindStringSubmatch(read(t, "../../docs/results.md"))
	if untrained == nil || paper == nil || speed == nil {
		t.Fatal("a table that README.md refers to has changed its form")
	}
	errors, taus := pytorch(t)
	return []stated{
		{`On the (\d+) graphs and machines of table 2`, []string{rows}},
		{`two minutes of search find steps that are (\S+) shorter than the human expert's in the geometric mean, ten seconds (\S+), one second (\S+) \(medians of six seeds`, []string{budgets[2], budgets[1], budgets[0]}},
		{`on the graph at hand in the same two minutes, finds steps that are (\S+) shorter`, []string{twoPolicy}},
		{`other families of models finds steps that are (\S+) shorter than the expert's in (\S+) to (\S+) seconds of processor time: [^.]*\. Sixteen placements of the policy alone, all simulated, reach (\S+) in (\S+) to (\S+) seconds`,
			slices.Concat([]string{percent(moved.best.mean())}, rangeOf(t, "zero_shot_cpu_seconds"), []string{percent(moved.direct.mean())}, rangeOf(t, "direct_16_cpu_seconds"))},
		{`Fine-tuned in (\d+) steps it reaches (\S+), which is (\S+) longer than five minutes of search`, []string{"49", percent(moved.tuned.mean()), percent(-moved.tunedLonger.mean())}},
		{`from an untrained network it reaches (\S+) on (\d+) rows, from the trained one (\S+) \(one seed`, []string{untrained[3], untrained[1], untrained[2]}},
		{`gives steps (\S+) shorter than learning them one by one with the same budget, and shorter than learning any two of them in all (\d+) cases`, []string{percent(joint.single.mean()), fmt.Sprint(len(joint.pair))}},
		{`GO's policy finds steps that are (\d+)%, (\d+)% and (\d+)% shorter than those of HDP`, policy},
		{`on three graphs, in (\d+) of (\d+) runs`, []string{wins, runs}},
		{`The best of as many random placements is (\d+)% and (\d+)% shorter and (\d+)% longer`, chance},
		{`its policy is (\S+) better than the genetic algorithm it improves \((\S+) in the paper, ICLR 2020\), and a solver of our own is (\S+) better`, []string{regal["REGAL, no warm start"], rounded(t, paper[1]), regal["phases, quick"]}},
		{`optimal contiguous splits of (\S+) published instances are found, to six digits, in at most ([\d.]+) seconds each`, contiguous(t)},
		{`It simulates (\d+) million operations a second`, speed[1:]},
		{`on ([\d,]+) random cases in every test run`, []string{oracleCases(t)}},
		{`mean error on measured half-precision matrix products is (\S+) on an H100, (\S+) on a B200 and (\S+) on an A100`, halfPrecision(t)},
		{`The predicted tokens a second of a replica under full load are (\S+) times the published ones in the geometric mean over (\d+) loads of TensorRT-LLM on H100, H200 and B200; (\d+) are within a quarter`, servingLoads(t)},
		{`The predicted step time is (\S+) of the published one in the geometric mean over (\d+) training and serving steps of systems that others tuned and measured; (\d+) are within a quarter`, byClass(t, "all", 2, 1, 5)},
		{`(\d+) of these train with parameters sharded over 16 to 128 GPUs \((\S+)\)`, byClass(t, "sharded over hosts", 1, 2)},
		{`parameters sharded over (\d+) to (\d+) GPUs`, gpusOf(t, "sharded over hosts")},
		{`of (\d+) billion parameters in a pipeline with tensor parallelism on (\d+) GPUs \(within (\d+%)\)`, []string{"175", gpusOf(t, "pipelines of split products")[0], farthest(t, "pipelines of split products")}},
		{`(\d+) to (\d+) placements each`, placements(t)},
		{`The plans found are (\d+%) to (\d+%) shorter, as measured, than the expert's with TensorFlow's default fusion\. The simulator predicts (\d+) steps of five workloads with a mean error of (\S+)\. [^.]* is [\d.]+% to [\d.]+%, [^.]*\. The steps of (\d) of (\d) PyTorch models are predicted within (\d+%)`, onCard(t)},
		{`random plans of three of these workloads the mean error is (\S+) to ([\d.]+%),`, randomPlans(t)},
		{`the other three are predicted (\d+%) to (\d+%) too short`, tooShort(t)},
		{`predicted steps is (\S+) to (\S+), Kendall's tau between predicted and measured ranking (\S+) to (\S+),`, slices.Concat(errors, taus)},
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

// servingLoads returns the mean of experiments/serving, of how many loads it is, and how many are within a
// quarter.
func servingLoads(t *testing.T) []string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^\| all \| \| \| (\d+) \| (\S+) \| \S+ to \S+ \| (\d+) \|`).FindStringSubmatch(read(t, "../serving/table.md"))
	if m == nil {
		t.Fatal("no line of all loads in experiments/serving/table.md")
	}
	return []string{m[2], m[1], m[3]}
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
	for _, row := range transferRows(t, "../transfer") {
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
