package main

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestRecorded: every line of the table in README.md is what the recorded runs give.
func TestRecorded(t *testing.T) {
	f, err := os.Open("results.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	runs := map[Cell][]result{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		of := r.Cell
		of.Seed = 0
		runs[of] = append(runs[of], r)
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, all := range runs {
		if want := line(all); !strings.Contains(string(page), want+"\n") {
			t.Errorf("README.md lacks %s", want)
		}
	}
}

// TestNothingFits: a run whose last placements do not fit has not improved, and its times are
// longer than anything.
func TestNothingFits(t *testing.T) {
	bad := result{Cell: Cell{Method: "hdp", Workload: "w", GPUs: 2, Evaluations: 100, Seed: 1}}
	bad.tell([]sample{{evaluations: 50, fit: 50, seconds: 0.2}, {evaluations: 100}}, 100)
	good := bad
	good.Seed = 2
	good.tell([]sample{{evaluations: 50, fit: 50, seconds: 0.2}, {evaluations: 100, fit: 10, seconds: 0.1}}, 100)
	good.Best, good.Random, good.Human = 0.1, 0.3, 0.2
	if got, want := line([]result{bad, good}), "| hdp | w | 2 | 100 | 200.0 | does not fit | 1 of 2 | does not fit | - | does not fit | does not fit | does not fit |"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := line([]result{good}), "| hdp | w | 2 | 100 | 200.0 | 100.0 | 1 of 1 | 100.0 | - | 300.0 | does not fit | 200.0 |"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestLargeRounds: where no round ends within the last tenth of the evaluations the last one
// counts.
func TestLargeRounds(t *testing.T) {
	var r result
	r.tell([]sample{{evaluations: 40, fit: 40, seconds: 0.4}, {evaluations: 80, fit: 40, seconds: 0.3}}, 100)
	if r.FirstRound != 0.4 || r.First != 0.4 || r.Last != 0.3 {
		t.Errorf("%+v", r)
	}
}

// TestCheck: methods that do not exist, no seeds and arguments behind the flags are errors.
func TestCheck(t *testing.T) {
	if err := check("rl-2017,hdp of ops", 6, nil); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		methods string
		seeds   int
		left    []string
	}{{"hpd", 6, nil}, {"hdp", 0, nil}, {"hdp", 6, []string{"x"}}} {
		if err := check(c.methods, c.seeds, c.left); err == nil {
			t.Errorf("%+v passed", c)
		}
	}
}
