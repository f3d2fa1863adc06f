package strategies

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"placer/hw"
	"placer/plan"
)

// TestWorkersGiveTheSameRows, in the same order, as one goroutine does.
func TestWorkersGiveTheSameRows(t *testing.T) {
	m, err := hw.Take("a100", 4, false)
	if err != nil {
		t.Fatal(err)
	}
	answer := func(workers int) (rows []Row, told []string) {
		x, err := NewComparison(source(), family("moe:layers=8,hidden=256,heads=4,kv_heads=4,ffn=512,seq=64,vocab=500,experts=4"), m, Config{Batch: 8, Workers: workers, Budget: plan.Budget{Evaluations: 20}, Clock: func() float64 { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		rows = x.Rows(context.Background(), func(r *Row) { told = append(told, r.Name) })
		return rows, told
	}
	want, names := answer(1)
	if len(want) < 10 || want[len(want)-1].Name != NamePlacement {
		t.Fatalf("rows %v", names)
	}
	for _, workers := range []int{2, 5} {
		got, told := answer(workers)
		if d := cmp.Diff(want, got); d != "" || !slices.Equal(told, names) {
			t.Errorf("%d workers, told %v (-one, +several):\n%s", workers, told, d)
		}
	}
}

// TestRowsEndWithTheContext: rows that were begun are there, in their order, and no others.
func TestRowsEndWithTheContext(t *testing.T) {
	m, err := hw.Take("a100", 4, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{1, 4} {
		x, err := NewComparison(source(), family(small[0]), m, Config{Batch: 64, Workers: workers, Clock: func() float64 { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		rows, ways := x.Rows(ctx, func(*Row) { cancel() }), x.ways()
		if len(rows) == 0 || len(rows) > len(ways) {
			t.Errorf("%d workers: %d rows of %d", workers, len(rows), len(ways))
		}
		for k, r := range rows {
			if r.Name != ways[k].name || r.Result == nil && r.Why == "" {
				t.Errorf("%d workers: row %d is %s, %v (%s), want %s", workers, k, r.Name, r.Result, r.Why, ways[k].name)
			}
		}
		if rows := x.Rows(ctx, nil); len(rows) > 0 {
			t.Errorf("%d workers: %d rows though nothing was begun", workers, len(rows))
		}
	}
}
