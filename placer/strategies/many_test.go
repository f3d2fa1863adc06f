package strategies

import (
	"context"
	"slices"
	"strings"
	"testing"

	"placer/graph/strategy"
	"placer/hw"
)

// TestFewStreams: where devices are too many for a stream beside each, steps of ranks that stand for
// all are simulated on those alone, which come to the same.
func TestFewStreams(t *testing.T) {
	j, err := NewJudge(source(), written(t, "h100", 4, 2, "4x400Gb/s", true))
	if err != nil {
		t.Fatal(err)
	}
	few := j.clone()
	few.streamed = nil // as of more devices than words have bits for
	x := newModels(family(small[0]), 16)
	for _, text := range []string{"one device", "zero-1=8 mb=2", "ddp=2 1f1b=4 mb=4", "zero-1=2 interleaved=2 chunks=2 tp=2 vocab sp mb=2"} {
		s, err := strategy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		step, err := x.step(j, s)
		if err != nil {
			t.Fatal(err)
		}
		want, err := j.Run(step)
		if err != nil {
			t.Fatal(err)
		}
		got, err := few.Run(step)
		if err != nil {
			t.Fatal(err)
		}
		if got.Seconds != want.Seconds || !slices.Equal(got.Peak, want.Peak) || got.Traffic != want.Traffic || got.Bubble != want.Bubble {
			t.Errorf("%v: %.9g s, %v held, %v sent, with all streams %.9g s, %v, %v", s, got.Seconds, got.Peak, got.Traffic, want.Seconds, want.Peak, want.Traffic)
		}
	}
}

// TestManyDevices: on as many devices as machines may have, rows that one replica stands for are there,
// experts shared out between hosts too, and others say why they are not.
func TestManyDevices(t *testing.T) {
	m := written(t, "h100", 8, hw.MaxDevices/8, "8x400Gb/s", true)
	if m.NumDevices() != hw.MaxDevices {
		t.Fatalf("%d devices", m.NumDevices())
	}
	comparison := func(name string) *Comparison {
		x, err := NewComparison(source(), family(name), m, Config{Batch: 1024, Clock: func() float64 { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	x := comparison("llama:layers=64,hidden=64,heads=2,kv_heads=2,ffn=64,seq=16,vocab=100")
	y := comparison("moe:layers=8,hidden=64,heads=2,kv_heads=2,ffn=64,seq=16,vocab=100,experts=64,top_k=2,grouped=true")
	for _, text := range []string{"ddp=1024 ep=64", "zero-1=128 ep=64 1f1b=8 mb=8"} {
		s, err := strategy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if r := y.asked(s); r.Result == nil || r.Overflow > 0 {
			t.Errorf("%s: %s", text, r.Why)
		}
	}
	data := strategy.Mesh{Data: 1024, Pipeline: 1, Tensor: 1}
	among := map[int]bool{}
	for _, s := range y.sharedExperts(data) {
		among[s.Experts] = true
	}
	if len(among) != 2 || !among[64] || !among[8] { // all that have experts, and those of a host
		t.Errorf("experts are shared out among %v", among)
	}
	for _, text := range []string{"ddp=1024", "zero-3=1024", "zero-1=512 tp=2", "zero-1=128 1f1b=8 mb=8", "ddp=16 1f1b=32 mb=64 tp=2"} {
		s, err := strategy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		x.c.Strategy = &s
		if r := x.Rows(context.Background(), nil)[0]; r.Result == nil || r.Overflow > 0 {
			t.Errorf("%s: %s", text, r.Why)
		}
	}
	s, err := strategy.Parse("ddp=16 1f1b=64 mb=64")
	if err != nil {
		t.Fatal(err)
	}
	x.c.Strategy = &s
	if r := x.Rows(context.Background(), nil)[0]; r.Result != nil || r.Why != "64 stages, want at most 32" {
		t.Errorf("%v: %v, %s", s, r.Result, r.Why)
	}
}

// TestWhyRowsAreRefused: a row says what keeps it from being simulated: the links that ranks share, the
// stages that are too many, the micro-batches that there are not.
func TestWhyRowsAreRefused(t *testing.T) {
	const model = "llama:layers=64,hidden=64,heads=8,kv_heads=8,ffn=64,seq=16,vocab=100"
	comparison := func(hosts int, network string, batch int64) *Comparison {
		x, err := NewComparison(source(), family(model), written(t, "h100", 8, hosts, network, true), Config{Batch: batch, Clock: func() float64 { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	s, err := strategy.Parse("ddp=8 1f1b=8 mb=24")
	if err != nil {
		t.Fatal(err)
	}
	if r := comparison(8, "1x100Gb/s", 192).asked(s); !strings.Contains(r.Why, "GPUs of a host share a network card, so that no replica stands for all: machine h100: 64 devices") {
		t.Errorf("%v with one network card a host: %q", s, r.Why)
	}
	for text, want := range map[string]string{
		"ddp=64":                 "a batch of 7 cannot be divided into the shares of 64 replicas",
		"tp=64 mb=2":             "a batch of 7 cannot be divided into 2 micro-batches",
		"ddp=8 cp=2 1f1b=8 mb=2": "a batch of 7 cannot be divided into 2 micro-batches for each of 4 replicas",
	} {
		s, err := strategy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if r := comparison(8, "8x400Gb/s", 7).asked(s); r.Why != want {
			t.Errorf("%s: %q, want %q", text, r.Why, want)
		}
	}
	if r := comparison(8, "8x400Gb/s", 192).asked(s); r.Result == nil {
		t.Errorf("%v with a network card each: %q", s, r.Why)
	}
	for _, c := range []struct {
		hosts int
		batch int64
		want  string
	}{
		{16, 192, "128 stages, want at most 32"},
		{2, 24, "a batch of 24 cannot be divided into micro-batches whose number is a multiple of the 16 stages"},
	} {
		x := comparison(c.hosts, "8x400Gb/s", c.batch)
		for _, w := range x.ways() {
			if w.name == NameInterleaved {
				if r := x.best(t.Context(), w.name, w.all); r.Why != c.want {
					t.Errorf("%d hosts, batch %d: %q, want %q", c.hosts, c.batch, r.Why, c.want)
				}
			}
		}
	}
}

// TestManyHosts: what a replica does does not depend on how many others there are, but for their
// collectives: a step of replicas without gradients between them takes as long on two hosts as on 128.
func TestManyHosts(t *testing.T) {
	var few float64
	for _, hosts := range []int{2, 128} {
		j, err := NewJudge(source(), written(t, "h100", 8, hosts, "8x400Gb/s", true))
		if err != nil {
			t.Fatal(err)
		}
		s := strategy.Strategy{Mesh: strategy.Mesh{Data: hosts, Pipeline: 1, Tensor: 8}, Schedule: strategy.OneFOneB, Chunks: 1, MicroBatches: 1, Bucket: strategy.DefaultBucket}
		step, err := newModels(family("llama:layers=2,hidden=256,heads=8,kv_heads=8,ffn=256,seq=16,vocab=512"), int64(hosts)).step(j, s)
		if err != nil {
			t.Fatal(err)
		}
		r, err := j.Run(step)
		if err != nil {
			t.Fatal(err)
		}
		gradients := 0.0
		for _, c := range step.Collectives {
			if c.Axis == strategy.DataAxis {
				x, err := j.collectiveSeconds(s.Mesh, c)
				if err != nil {
					t.Fatal(err)
				}
				gradients += x
			}
		}
		if rest := r.Seconds - gradients; few == 0 {
			few = r.Seconds
		} else if r.Seconds <= few || rest > few {
			t.Errorf("%d hosts: %.6g s, of which gradients at most %.6g; two hosts %.6g s", hosts, r.Seconds, gradients, few)
		}
	}
}
