package strategies

import (
	"context"
	"slices"
	"testing"

	"placer/graph/strategy"
	"placer/hw"
)

// TestMostOps: where nothing fits, more micro-batches are tried until their step would be too
// large, and the fewest are in any case.
func TestMostOps(t *testing.T) {
	m, err := hw.Take("a100", 2, false)
	if err != nil {
		t.Fatal(err)
	}
	for d := range m.Devices {
		m.Devices[d].Memory = 1
	}
	x, err := NewComparison(source(), family(small[0]), m, Config{Batch: 64, Clock: func() float64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	all := x.divided(piped(strategy.OneFOneB, 2, 0, 1))
	if len(all) != 6 || all[0].MicroBatches != 2 {
		t.Fatalf("%v, want 2 to 64 micro-batches", all)
	}
	for _, want := range []struct{ most, tried, microBatches int }{
		{0, 1, 2}, {x.models.opsOf(x.judge, all[2]), 3, 8}, {mostOps, 6, 64},
	} {
		x.most = want.most
		row := x.best(context.Background(), NamePipeline, all)
		if row.Result == nil {
			t.Fatal(row.Why)
		}
		// Each is tried as it is, and with its activations recomputed where that can be done.
		if row.Tried < want.tried || row.Tried > 2*want.tried || row.Strategy.MicroBatches > want.microBatches || row.Ops > max(want.most, 2*x.models.opsOf(x.judge, all[0])) {
			t.Errorf("at most %d ops: %d tried, %v of %d ops, want %d numbers of micro-batches up to %d", want.most, row.Tried, row.Strategy, row.Ops, want.tried, want.microBatches)
		}
	}
	for _, s := range all { // the estimate
		r, err := x.Simulate(s)
		if err != nil {
			t.Fatal(err)
		}
		if most := x.models.opsOf(x.judge, s); r.Ops-10*s.Pipeline > most { // transfers
			t.Errorf("%v has %d ops, the estimate is %d", s, r.Ops, most)
		}
	}
}

// TestShares: a share that is no power of two is divided as far as it goes.
func TestShares(t *testing.T) {
	m, err := hw.Take("a100", 4, false)
	if err != nil {
		t.Fatal(err)
	}
	for batch, want := range map[int64][]int{6: {2, 6}, 12: {4, 12}, 16: {4, 8, 16}, 3: {1, 3}} {
		x, err := NewComparison(source(), family(small[0]), m, Config{Batch: batch, Clock: func() float64 { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, s := range x.divided(piped(strategy.OneFOneB, 4, 0, 1)) {
			got = append(got, s.MicroBatches)
		}
		if !slices.Equal(got, want) {
			t.Errorf("a batch of %d: micro-batches %v, want %v", batch, got, want)
		}
	}
}

// TestAsked: a strategy that is asked for is the only row, and is the step that Simulate gives.
func TestAsked(t *testing.T) {
	m, err := hw.Take("a100", 2, false)
	if err != nil {
		t.Fatal(err)
	}
	for text, possible := range map[string]bool{"zero-1=2 mb=2": true, "ddp=2 recompute": true, "ddp=4": false, "one device": true} {
		s, err := strategy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		x, err := NewComparison(source(), family(small[0]), m, Config{Batch: 64, Strategy: &s, Clock: func() float64 { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		rows := x.Rows(context.Background(), nil)
		if len(rows) != 1 || rows[0].Name != NameAsked || rows[0].Strategy != s || (rows[0].Result != nil) != possible || (rows[0].Why == "") != possible {
			t.Fatalf("%s: %+v", text, rows)
		}
		if !possible {
			continue
		}
		want, err := x.Simulate(s)
		if err != nil {
			t.Fatal(err)
		}
		if rows[0].Seconds != want.Seconds {
			t.Errorf("%s: %g s, want %g", text, rows[0].Seconds, want.Seconds)
		}
	}
}

// TestHybridsInterleave: where several stages a rank shorten the best pipeline of a mesh, the row has
// them, and no number of them that is tried is shorter.
func TestHybridsInterleave(t *testing.T) {
	m, err := hw.Take("a100", 4, false)
	if err != nil {
		t.Fatal(err)
	}
	x, err := NewComparison(source(), family("llama:layers=8,hidden=1024,heads=8,kv_heads=8,ffn=4096,seq=512,vocab=8000"), m, Config{Batch: 8, Clock: func() float64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	plain := strategy.Strategy{Mesh: strategy.Mesh{Data: 2, Pipeline: 2, Tensor: 1}, Schedule: strategy.OneFOneB, MicroBatches: 2, Chunks: 1, Bucket: strategy.DefaultBucket}
	first, err := x.Simulate(plain)
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	s, r := x.interleaved(t.Context(), plain, first, &tried)
	if s.Schedule != strategy.Interleaved || r.Seconds >= first.Seconds || tried != len(severalChunks) {
		t.Errorf("%v takes %g s, %v %g, %d tried", plain, first.Seconds, s, r.Seconds, tried)
	}
	row := x.best(t.Context(), NameHybrid, []strategy.Strategy{plain})
	if row.Result == nil || row.Seconds > r.Seconds {
		t.Errorf("the row has %v, %v", row.Strategy, row.Result)
	}
}

// TestLayers: a row says how many layers each chunk of its stages has, in all those of the model, and
// nothing where stages are not cut between layers.
func TestLayers(t *testing.T) {
	for _, c := range []struct {
		model, strategy string
		chunks, layers  int
	}{
		{"llama:layers=5,hidden=64,heads=4,kv_heads=4,ffn=64,seq=16,vocab=100", "1f1b=2 mb=2", 2, 5},
		{"llama:layers=5,hidden=64,heads=4,kv_heads=4,ffn=64,seq=16,vocab=100", "interleaved=2 chunks=2 mb=2", 4, 5},
		{"llama:layers=5,hidden=64,heads=4,kv_heads=4,ffn=64,seq=16,vocab=100", "ddp=2", 1, 5},
		{small[4], "1f1b=2 mb=2", 0, 0}, // its layers lead forth and back in time
	} {
		s, err := strategy.Parse(c.strategy)
		if err != nil {
			t.Fatal(err)
		}
		x, err := NewComparison(source(), family(c.model), written(t, "h100", 2, 1, "", true), Config{Batch: 8, Strategy: &s, Clock: func() float64 { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		r := x.asked(s)
		if r.Result == nil {
			t.Fatalf("%s: %s", c.strategy, r.Why)
		}
		sum := 0
		got := x.Layers(&r)
		for _, n := range got {
			sum += n
		}
		if len(got) != c.chunks || sum != c.layers {
			t.Errorf("%s of %s: layers %v, want %d in %d chunks", c.strategy, c.model, got, c.layers, c.chunks)
		}
	}
}
