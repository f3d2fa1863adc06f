package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRecorded: README.md has the table of the recorded rows.
func TestRecorded(t *testing.T) {
	rows, err := read("rows.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	table(&b, rows)
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), b.String()) {
		t.Errorf("README.md does not have this table:\n%s", b.String())
	}
}

// TestOtherRowsStayOut: rows of another number of evaluations, another seed or another machine
// are no part of a table.
func TestOtherRowsStayOut(t *testing.T) {
	rows := []row{
		{Workload: "a", GPU: "p100", Evaluations: 1000, Seed: 1, Fresh: 1, FreshFits: true, Step: 2, Fits: true, FreshMoved: 4},
		{Workload: "a", GPU: "p100", Evaluations: 2000, Seed: 1, Fresh: 1, FreshFits: true, Step: 1, Fits: true, FreshMoved: 4},
		{Workload: "a", GPU: "a100", Evaluations: 2000, Seed: 1, Fresh: 1, FreshFits: true, Step: 1.5, Fits: true, FreshMoved: 4},
	}
	var b bytes.Buffer
	table(&b, of(rows, 2000, 1))
	for _, want := range []string{"| a | p100 | 1 | 1 | 1 | 1 | +0.0%, +0.0% | 0 | 0 | - |", "| a | a100 | 1 | 1 | 0 | 1 | +50.0%, +50.0% | 0 | 0 | - |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
}

// TestWhatDoesNotFit: a changed plan that does not fit has no step beside one that does, and
// where a search from nothing finds none there is nothing to stand beside.
func TestWhatDoesNotFit(t *testing.T) {
	var b bytes.Buffer
	table(&b, []row{
		{Workload: "a", GPU: "p100", Fresh: 1, FreshFits: true, Step: 0.5, FreshMoved: 4},
		{Workload: "b", GPU: "p100", Fresh: 1, Step: 0.5, Fits: true, FreshMoved: 4},
	})
	for _, want := range []string{"| a | p100 | 1 | 1 | 0 | 1 | does not fit, does not fit | 0 | 0 | - |", "| b | p100 | 1 | 1 | 1 | 1 | -, - | 0 | 0 | - |"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in:\n%s", want, b.String())
		}
	}
}

// TestArguments: what stands behind the flags is an error.
func TestArguments(t *testing.T) {
	if err := run(filepath.Join(t.TempDir(), "rows.jsonl"), nil, 10, 1, []string{"moe@a100"}); err == nil {
		t.Error("an argument passed")
	}
}
