package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"placer/internal/jsonx"
	"placer/plan"
)

func example() *Search {
	gap, none, quarter := 0.5, 0.0, 0.25
	first := 0.1
	s := &Search{
		Format: SearchFormat, Graph: Graph{"gnmt2", 28138, 47035, "ab12"}, Machine: Machine{"p100", 2, "cd34"},
		Budget: Budget{Seconds: 120}, Seed: 7, Granularity: "chain", Scheduler: "critical-path", LowerBound: 0.2,
		Rows: []Row{
			{Method: "human", Kind: plan.Baseline, StepTime: 0.4, FIFO: 0.45, Reduction: &none, Feasible: true, Peak: []int64{4e9, 6e9}, LowerBound: 0.2, Gap: &gap, Evaluations: 1},
			{Method: "single", Kind: plan.Baseline, StepTime: 0.35, FIFO: 0.35, Overflow: 2e9, Peak: []int64{18e9, 0}, LowerBound: 0.2, Evaluations: 1},
			{Method: "anneal", Kind: plan.Search, StepTime: 0.3, FIFO: 0.5, Reduction: &quarter, Feasible: true, Peak: []int64{5e9, 5e9}, LowerBound: 0.2, Gap: &gap, Evaluations: 4000, CPUSeconds: 50, Notes: []string{"a remark"}},
		},
		Skipped: []Skip{{"metis", plan.Baseline, "gpmetis not found; install metis"}}, Seconds: 120.2, Evaluations: 4002, FirstFeasible: &first,
	}
	s.Best = s.Rows[2]
	return s
}

func TestSearchText(t *testing.T) {
	want := `gnmt2: 28138 ops, 47035 edges on p100, 2 devices
  critical-path scheduler, seed 7
 method    kind         step time  reduction    FIFO  peak memory    gap  evaluations  cpu s
---------------------------------------------------------------------------------------------
 human     baseline        400 ms       0.0%  450 ms      6.00 GB  50.0%            1    0.0
 single    baseline  does not fit          -  350 ms     18.00 GB      -            1    0.0
 anneal *  search          300 ms      25.0%  500 ms      5.00 GB  50.0%         4000   50.0
 metis     baseline             -          -       -            -      -            -      -
single: 2.00 GB more than the devices have; its step would take 350 ms
anneal: a remark
metis: unavailable: gpmetis not found; install metis
reduction: 1 - step time / that of the human expert's plan
gap: step time / proven lower bound - 1
* best: anneal, step 300 ms; proven lower bound 200 ms
  4002 evaluations in 120.2 s
`
	var b bytes.Buffer
	if err := example().WriteText(Wide(&b)); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}

// TestHeldAgainst: in a terminal's columns, what the best plan is worth beside one device
// and beside the best rule.
func TestHeldAgainst(t *testing.T) {
	s := example()
	small, long := 0.03, "a-rule-with-a-long-name-and-a-suffix+fusion"
	s.OneDevice, s.BestRule = &Reference{Method: "one-device", Value: 0.309, Feasible: true, Fused: true, Reduction: small}, &Reference{Method: "heft", Value: 0.3, Feasible: true}
	s.Rows[2].OverOneDevice, s.Rows[0].Method, s.Tasks = &small, long, "place,schedule,fuse"
	s.Assumptions = []string{"no machine is named: p100"}
	want := `gnmt2: 28138 ops, 47035 edges on p100, 2 devices
  tasks place,schedule,fuse; critical-path scheduler, seed 7
 method                                          step time  reduction    gap
-----------------------------------------------------------------------------
 a-rule-with-a-long-name-and-a-suffix+fusion        400 ms          -  50.0%
 single                                       does not fit          -      -
 anneal *                                           300 ms       3.0%  50.0%
 metis                                                   -          -      -
single: 2.00 GB more than the devices have; its step would take 350 ms
anneal: a remark
metis: unavailable: gpmetis not found; install metis
reduction: 1 - step time / that of the best plan on one device
gap: step time / proven lower bound - 1
assumed: no machine is named: p100
* best: anneal, step 300 ms; proven lower bound 200 ms
  4002 evaluations in 120.2 s
3.0% shorter than the best plan on one device (309 ms, fused)
no shorter than the best rule, heft (300 ms)
`
	var b bytes.Buffer
	if err := s.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, " ") && len(line) > 81 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
}

// TestReducedFromARule: where no plan on one device fits, reductions are relative to the
// best rule, and the table says so.
func TestReducedFromARule(t *testing.T) {
	s := example()
	s.Tasks = "place,schedule,fuse"
	s.OneDevice, s.BestRule = &Reference{Method: "one-device", Value: 0.35}, &Reference{Method: "heft", Value: 0.375, Feasible: true}
	var b bytes.Buffer
	if err := s.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"300 ms      20.0%", "400 ms      -6.7%", "does not fit          -", "that of the best rule, as no plan on one device fits"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestNotesAreSaidOnce: a note of several rows is one line that names them.
func TestNotesAreSaidOnce(t *testing.T) {
	s := example()
	s.Rows[0].Notes, s.Rows[2].Notes = []string{"a remark"}, []string{"another", "a remark"}
	var b bytes.Buffer
	if err := s.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, "\nhuman, anneal: a remark\n") || strings.Count(text, "a remark") != 1 || !strings.Contains(text, "\nanneal: another\n") {
		t.Errorf("got\n%s", text)
	}
}

// TestMeasuredText: a search that measures shows predictions beside its times,
// and names what was not measured.
func TestMeasuredText(t *testing.T) {
	s := example()
	s.Evaluator, s.Measured = "both", &Measured{Placements: 12, OutOfMemory: 1, Known: 3, Failed: 2, Mode: "eager", Repeats: 5, Best: 4}
	predicted := 0.28
	s.Rows[0].Unmeasured = "no answer"
	s.Rows[2].Predicted = &predicted
	want := `gnmt2: 28138 ops, 47035 edges on p100, 2 devices
  critical-path scheduler, seed 7
 method    kind         step time  predicted  reduction    FIFO  peak memory    gap  evaluations  cpu s
--------------------------------------------------------------------------------------------------------
 human     baseline        400 ms          -       0.0%  450 ms      6.00 GB  50.0%            1    0.0
 single    baseline  does not fit          -          -  350 ms     18.00 GB      -            1    0.0
 anneal *  search          300 ms     280 ms      25.0%  500 ms      5.00 GB  50.0%         4000   50.0
 metis     baseline             -          -          -       -            -      -            -      -
human: the step time is predicted, not measured: no answer
single: 2.00 GB more than the devices have; its step would take 350 ms
anneal: a remark
metis: unavailable: gpmetis not found; install metis
reduction: 1 - step time / that of the human expert's plan
gap: step time / proven lower bound - 1
step times are measured (eager mode, median of 5, the best 4 of a round); 12
  placements run, 1 of them out of memory, 3 known before, 2 failed
* best: anneal, step 300 ms; proven lower bound of predicted steps 200 ms
  4002 evaluations in 120.2 s
`
	var b bytes.Buffer
	if err := s.WriteText(Wide(&b)); err != nil {
		t.Fatal(err)
	}
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}

// TestSearchJSON: what programs rely on is there, under its name, and the
// document reads back.
func TestSearchJSON(t *testing.T) {
	var b bytes.Buffer
	if err := jsonx.Write(&b, example()); err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(b.Bytes(), &keys); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"format", "graph", "machine", "budget", "seed", "best", "rows", "skipped"} {
		if _, ok := keys[k]; !ok {
			t.Errorf("no key %q", k)
		}
	}
	for _, r := range keys["rows"].([]any) {
		for _, k := range []string{"method", "kind", "step_time_s", "reduction_vs_human", "feasible", "peak_bytes", "lower_bound_s", "gap", "evaluations", "cpu_seconds"} {
			if _, ok := r.(map[string]any)[k]; !ok {
				t.Errorf("row %v has no key %q", r, k)
			}
		}
	}
	var back Search
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	if err := d.Decode(&back); err != nil {
		t.Fatal(err)
	}
	var again, first bytes.Buffer
	jsonx.Write(&first, example())
	jsonx.Write(&again, &back)
	if !bytes.Equal(first.Bytes(), again.Bytes()) {
		t.Error("the document changes when it is read and written")
	}
}

func TestPercent(t *testing.T) {
	x := func(x float64) *float64 { return &x }
	for _, c := range []struct {
		share *float64
		want  string
	}{{nil, "-"}, {x(0), "0.0%"}, {x(0.25), "25.0%"}, {x(-1.5), "-150.0%"}} {
		if got := share(c.share); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestRate: no link is shown as one of no bandwidth.
func TestRate(t *testing.T) {
	for bytes, want := range map[float64]string{125e6: "0.125 GB/s", 1.25e9: "1.25 GB/s", 9e9: "9 GB/s", 12.5e9: "12 GB/s", 2039e9: "2039 GB/s"} {
		if got := rate(bytes); got != want {
			t.Errorf("%g bytes a second are %s, want %s", bytes, got, want)
		}
	}
}
