package main

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"placer/hw"
	"placer/hw/bench"
)

const card = "../hardware/h200"

// TestCardIsFitted: the recorded figures of the H200 give the recorded constants, and the
// built-in machine has them to four digits.
func TestCardIsFitted(t *testing.T) {
	var recorded, again bench.Result
	for _, r := range []*bench.Result{&recorded, &again} {
		if err := json.Unmarshal([]byte(read(t, card+"/hardware.json")), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := again.Calibrate(); err != nil {
		t.Fatal(err)
	}
	if len(again.Fits) != len(recorded.Fits) || len(again.Fits) < 8 {
		t.Fatalf("%d classes are fitted, %d are recorded", len(again.Fits), len(recorded.Fits))
	}
	for i, want := range recorded.Fits {
		if got := again.Fits[i]; got.Class != want.Class || math.Abs(got.After.MAPE-want.After.MAPE) > 1e-3 {
			t.Errorf("%s is off by %g, recorded %s by %g", got.Class, got.After.MAPE, want.Class, want.After.MAPE)
		}
	}

	here, err := hw.ReadFile(card + "/here.json")
	if err != nil {
		t.Fatal(err)
	}
	built, err := hw.Load("h200m")
	if err != nil {
		t.Fatal(err)
	}
	a, b := here.Devices[0].Calibration, built.Devices[0].Calibration
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 0.005*math.Abs(want) {
			t.Errorf("h200m: %s is %g, measured %g", what, got, want)
		}
	}
	near("launch in a graph", float64(built.Devices[0].GraphLaunch), float64(here.Devices[0].GraphLaunch))
	near("bandwidth of streams", b.Streams.Bandwidth, a.Streams.Bandwidth)
	near("ramp", float64(b.Streams.Ramp), float64(a.Streams.Ramp))
	near("fill", float64(b.Streams.Fill), float64(a.Streams.Fill))
	for k, q := range a.GEMM {
		p := b.GEMM[k]
		for i, x := range [][2]float64{{p.Peak, q.Peak}, {p.Feed, q.Feed}, {float64(p.Ends), float64(q.Ends)}, {p.Tail, q.Tail}, {float64(p.Fixed), float64(q.Fixed)}, {p.Memory, q.Memory}, {p.Odd, q.Odd}} {
			near(fmt.Sprintf("constant %d of %s", i, k), x[0], x[1])
		}
	}
}

// onCard returns what README.md states of the H200: the least and the most that the
// searched plan is shorter than the expert's with default fusion, measured; the number of plans by rule and the
// mean error of their predictions; and how many PyTorch models are predicted how well.
func onCard(t *testing.T) []string {
	var steps struct {
		Trials []struct {
			Workload string  `json:"workload"`
			Devices  int     `json:"devices"`
			Plan     string  `json:"plan"`
			Mode     string  `json:"mode"`
			Measured float64 `json:"measured_s"`
		} `json:"trials"`
	}
	if err := json.Unmarshal([]byte(read(t, card+"/steps.json")), &steps); err != nil {
		t.Fatal(err)
	}
	expert := map[string]float64{}
	for _, x := range steps.Trials {
		if x.Plan == "human, fused" && x.Mode == "graph" {
			expert[fmt.Sprintf("%s-%d", x.Workload, x.Devices)] = x.Measured
		}
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, name := range []string{"rnnlm2-2", "rnnlm2-4", "inception-2", "inception-4"} {
		var doc struct {
			Rows []struct {
				Method string  `json:"method"`
				Step   float64 `json:"step_time_s"`
			} `json:"rows"`
		}
		if err := json.Unmarshal([]byte(read(t, card+"/search-"+name+".json")), &doc); err != nil {
			t.Fatal(err)
		}
		for _, r := range doc.Rows {
			if r.Method == "portfolio" {
				shorter := 1 - r.Step/expert[name]
				lo, hi = min(lo, shorter), max(hi, shorter)
			}
		}
	}
	rule := regexp.MustCompile(`(?m)^\| plans by rule, graph \| (\d+) \| (\S+) \|`).FindStringSubmatch(read(t, card+"/steps.md"))
	const within = 13
	models, good := 0, 0
	for _, m := range regexp.MustCompile(`(?m)^(?:\|[^|]*){5}\| \S+ ms, ([+-]\d+)% \|`).FindAllStringSubmatch(read(t, card+"/torch.md"), -1) {
		models++
		if e := mustParse(t, m[1]); math.Abs(e) <= within {
			good++
		}
	}
	return []string{fmt.Sprintf("%.0f%%", 100*lo), fmt.Sprintf("%.0f%%", 100*hi), rule[1], rule[2], fmt.Sprint(good), fmt.Sprint(models), fmt.Sprintf("%d%%", within)}
}

// TestCardSteps: docs/hardware.md states the recorded errors of predicted steps.
func TestCardSteps(t *testing.T) {
	page := read(t, "../../docs/hardware.md")
	of := map[string]string{}
	for _, file := range []string{"steps", "steps-4", "steps-gnmt2"} { // the later one counts
		var doc struct {
			Summary []struct {
				Of     string  `json:"of"`
				Trials int     `json:"trials"`
				MAPE   float64 `json:"mape"`
				P95    float64 `json:"p95"`
				Tau    float64 `json:"kendall_tau"`
			} `json:"summary"`
		}
		if err := json.Unmarshal([]byte(read(t, card+"/"+file+".json")), &doc); err != nil {
			t.Fatal(err)
		}
		for _, s := range doc.Summary {
			if file == "steps" || strings.HasPrefix(s.Of, "random") {
				of[s.Of] = fmt.Sprintf("| %d | %.1f%% | %.1f%% | %.2f |", s.Trials, 100*s.MAPE, 100*s.P95, s.Tau)
			}
		}
	}
	for what, label := range map[string]string{
		"plans by rule, graph":                     "by rule, five workloads on 1, 2 and 4 devices, with and without fusion",
		"random plans, rnnlm2 on 2 devices, graph": "random, rnnlm2 on 2", "random plans, trfxl2 on 2 devices, graph": "random, trfxl2 on 2",
		"random plans, gnmt2 on 2 devices, graph": "random, gnmt2 on 2", "random plans, rnnlm2 on 4 devices, graph": "random, rnnlm2 on 4",
		"random plans, trfxl2 on 4 devices, graph": "random, trfxl2 on 4", "random plans, gnmt2 on 4 devices, graph": "random, gnmt2 on 4",
	} {
		if want := "| " + label + " " + of[what]; !strings.Contains(page, want) {
			t.Errorf("docs/hardware.md lacks %q", want)
		}
	}
	for line := range strings.Lines(strings.SplitN(read(t, card+"/torch.md"), "\n\n", 2)[0]) {
		if !strings.Contains(page, strings.TrimSpace(line)) {
			t.Errorf("docs/hardware.md lacks the line %q of torch.md", line)
		}
	}
}
