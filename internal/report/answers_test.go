package report_test

import (
	"bytes"
	"math/big"
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/internal/report"
	"placer/placer/check"
	"placer/placer/explain"
	"placer/placer/verdict"
	"placer/plan"
	"placer/units"
)

// oneOp is a graph of one op with a name of ordinary length.
func oneOp(t *testing.T) *graph.Graph {
	t.Helper()
	b := graph.NewBuilder("one")
	b.Op(graph.Op{Name: "op", Kind: "MatMul", Bytes: graph.Auto, Forward: graph.None}, nil, graph.Tensor{Bytes: 4})
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// narrow fails for lines beyond a terminal's width.
func narrow(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestExplanationSums: the printed parts of the critical path sum to the printed step,
// digit by digit, with more parts than the tables show.
func TestExplanationSums(t *testing.T) {
	x := &explain.Explanation{Binds: "gpu:0", Share: 0.6}
	for k := range 40 {
		p := explain.Part{Name: strings.Repeat("l", 1+k%50) + string(rune('a'+k%26)), Compute: explain.Time(333_333_333 * (k + 1)), Transfer: explain.Time(77_777_777 * (k % 3)), Steps: k}
		x.Layers = append(x.Layers, p)
		x.Step += p.Total()
	}
	x.Kinds = append(x.Kinds, x.Layers...)
	x.Devices = []explain.Device{{Name: "gpu:0", Busy: x.Step}}
	x.WhatIf = []explain.WhatIf{{Name: "links of twice the bandwidth", Step: x.Step / 3, Gain: x.Step - x.Step/3, Fits: true}}
	m, err := hw.Take("p100", 1, false)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := report.Explain(oneOp(t), m, &plan.Plan{}, x).WriteText(&buf); err != nil {
		t.Fatal(err)
	}
	narrow(t, buf.String())
	tables := 0
	for _, table := range strings.Split(buf.String(), "critical path by ")[1:] {
		table, _, _ = strings.Cut(table, "\n\n")
		sum, rows := new(big.Rat), 0
		for line := range strings.Lines(table) {
			f := strings.Fields(line)
			if len(f) < 3 || !strings.HasSuffix(f[len(f)-1], "%") {
				continue
			}
			total, ok := new(big.Rat).SetString(f[len(f)-2])
			if !ok {
				t.Fatalf("no time in %q", line)
			}
			if f[0] == "the" {
				tables++
				if sum.Cmp(total) != 0 || rows != 12 {
					t.Errorf("%d parts sum to %s, the step is %s", rows, sum.FloatString(6), total.FloatString(6))
				}
				break
			}
			a, _ := new(big.Rat).SetString(f[len(f)-4])
			b, _ := new(big.Rat).SetString(f[len(f)-3])
			if new(big.Rat).Add(a, b).Cmp(total) != 0 {
				t.Errorf("compute and transfer do not sum in %q", line)
			}
			sum.Add(sum, total)
			rows++
		}
	}
	if tables != 2 {
		t.Errorf("found %d sums:\n%s", tables, buf.String())
	}
}

// TestVerdictText: what is said of machines on which one device is enough, more pay, or
// nothing fits; and no line is wider than a terminal.
func TestVerdictText(t *testing.T) {
	m, err := hw.Take("a100", 8, false)
	if err != nil {
		t.Fatal(err)
	}
	e := verdict.ModelError{Share: 0.03, Source: "a test"}
	enough, pay, nothing := *m, *m, *m
	enough.Name, pay.Name, nothing.Name = "one-is-enough", "more-pay", "too-small"
	price := make([]float64, 8)
	for d := range price {
		price[d] = 1.5
	}
	ms := []verdict.Machine{{Machine: &enough, Error: e}, {Machine: &pay, Error: e, Price: price}, {Machine: &nothing, Error: e}}
	var answers []verdict.Answer
	for k := range ms {
		for _, n := range []int{1, 8} {
			a := verdict.Answer{Machine: k, Devices: n, Used: n, On: ms[k].Taken(n), Method: "polish", Score: plan.Score{Value: 0.123456}, Bound: 0.1, AtPeak: 0.05, Peak: make([]units.Bytes, n)}
			a.Peak[0] = 67.89e9
			switch k {
			case 1:
				a.Score.Value /= float64(n)
			case 2:
				a.Score.Overflow, a.AtLeast = 123_456_789_012, 100_000_000_000
			}
			if a.Score.Feasible() {
				a.Seen = []verdict.Point{{Machine: k, Devices: n, Step: a.Score.Value, Memory: a.Peak[0], Method: a.Method}}
			}
			answers = append(answers, a)
		}
	}
	alone := report.Judge(oneOp(t), 64, ms[:1], answers[:1], []verdict.Left{{Devices: 2}, {Devices: 4}}, nil)
	alone.Leave(true)
	if m := alone.Machines[0]; m.OneEnough || !slices.Equal(m.Left, []int{2, 4}) || !alone.Interrupted ||
		!strings.Contains(alone.Headline[0], "other counts have not been judged") || !slices.Contains(alone.Notes, "one-is-enough: interrupted before 2, 4 devices.") {
		t.Errorf("interrupted behind one device: %+v %q %q", m, alone.Headline, alone.Notes)
	}
	var buf bytes.Buffer
	if err := report.Judge(oneOp(t), 64, ms, answers, nil, nil).WriteText(&buf); err != nil {
		t.Fatal(err)
	}
	text := buf.String()
	narrow(t, text)
	joined := strings.Join(strings.Fields(text), " ")
	for _, want := range []string{
		"one-is-enough: one GPU is enough: 518.4 samples/s, and no plan found for up to 8 is faster.",
		"one-is-enough: 1 and 8 devices are a tie: their steps differ by no more than the model's error, 3.0%.",
		"more-pay: fastest with 8 GPUs: 4147 samples/s, 8.00 times one GPU (518.4 samples/s).",
		"too-small: no plan that was found fits.",
		"too-small: 1 GPU does not fit: the best plan lacks 123.46 GB (123456789012 bytes), any plan at least 100.00 GB.",
		"Cheapest: 1 x more-pay, 0.8038 per million samples.",
	} {
		if !strings.Contains(joined, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

// TestCheckText: a finding says rule, cost and change within a terminal's width.
func TestCheckText(t *testing.T) {
	m, err := hw.Take("a100", 1, false)
	if err != nil {
		t.Fatal(err)
	}
	r := &check.Report{Step: 0.1, Findings: []check.Finding{
		{Rule: check.FarWeights, Severity: check.Warning, Op: "w", Message: strings.Repeat("long words ", 20), Fix: "move it", Tried: true, Gain: 0.01},
		{Rule: check.DoesNotFit, Severity: check.Error, Message: "too much"},
	}}
	var buf bytes.Buffer
	if err := report.Checked(oneOp(t), m, r).WriteText(&buf); err != nil {
		t.Fatal(err)
	}
	narrow(t, buf.String())
	for _, want := range []string{"warning: far-weights: long words", "to do: move it (simulated: 10 ms less, 10.0% of the step).", "error: does-not-fit: too much.", "one on a100: 1 error, 1 warning; its step takes 100 ms."} {
		if !strings.Contains(buf.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, buf.String())
		}
	}
}
