package main

import (
	"math"
	"os"
	"testing"
)

// TestRecorded: every row has its prediction, the table is that of what is recorded, and the loads of one
// server are predicted as recorded.
func TestRecorded(t *testing.T) {
	rows, err := read(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) < 100 {
		t.Fatalf("%d rows", len(rows))
	}
	table, err := os.ReadFile("table.md")
	if err != nil || string(table) != tables(rows) {
		t.Errorf("table.md is not that of predicted.tsv: go run ./experiments/serving -table (%v)", err)
	}
	again := 0
	for k := range rows {
		r := rows[k]
		if r.predicted <= 0 {
			t.Errorf("%s has no prediction", r.key())
		}
		if r.model != "llama-8b-fp8" || r.gpu != "h100" || again == 3 {
			continue
		}
		again++
		was := r.predicted
		if err := r.predict("."); err != nil {
			t.Fatal(err)
		}
		if math.Abs(r.predicted/was-1) > 1e-3 {
			t.Errorf("%s: %.1f tokens/s, recorded are %.1f: make repro-serving without predicted.tsv", r.key(), r.predicted, was)
		}
	}
}
