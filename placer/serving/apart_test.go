package serving

import (
	"context"
	"errors"
	"math"
	"testing"

	"placer/graph/strategy"
	"placer/units"
)

// TestKeys: what crosses are the keys and values of a prompt's tokens that were not cached.
func TestKeys(t *testing.T) {
	c := Config{Load: Load{Prompt: 3000, Output: 200}, Sequences: 64}
	c.Machine, c.Captured = machine(t, 2, 40e9)
	for cached, tokens := range map[int64]int64{0: 3000, 1000: 2000} {
		c.Cached = cached
		got, err := planned(t, c, modelOf(small, nil)).keys()
		if want := units.Bytes(2 * 4 * 4 * 64 * 2 * tokens); err != nil || math.Abs(float64(got-want)) > 0.01*float64(want) { // keys and values, layers, heads, columns, bytes
			t.Errorf("%d tokens cached: %v cross (%v), want %v", cached, got, err, want)
		}
	}
}

// TestApart: both kinds of replicas keep to the limits on the machine's devices, and no other numbers of
// replicas of the divisions that are tried serve more.
func TestApart(t *testing.T) {
	for _, l := range []Load{{Prompt: 400, Output: 100}, {Prompt: 2000, Output: 20, TTFT: 3e-3}, {Prompt: 200, Output: 400, TPOT: 3e-4}} {
		c := Config{Load: l, Sequences: 256}
		c.Machine, c.Captured = machine(t, 4, 120e6)
		p := planned(t, c, modelOf(small, nil))
		a, err := p.Apart(t.Context(), 0, nil, nil)
		if err != nil || a == nil {
			t.Fatalf("%+v: %v, %v", l, a, err)
		}
		if l.TTFT > 0 && a.TTFT() > l.TTFT || l.TPOT > 0 && a.TPOT(l.Output) > l.TPOT || a.Devices() > 4 || max(a.Read.Fullest, a.Decode.Fullest) > 120e6 {
			t.Errorf("%+v: %+v keeps to no limit", l, a)
		}
		most := 0.0
		for _, r := range p.tried {
			for _, d := range p.tried {
				reads, decodes := p.best(t, p.reading, r), p.best(t, p.decoding, d)
				for readers := 1; readers < 4; readers++ {
					for decoders := 1; readers*r.Ranks()+decoders*d.Ranks() <= 4; decoders++ {
						most = max(most, min(float64(readers)*reads, float64(decoders)*decodes))
					}
				}
			}
		}
		// Rows end where twice the batch is no gain, and those that are close count as one.
		if a.Rate < most/gain/gain/gain {
			t.Errorf("%+v: %+v serves %g requests/s, others %g", l, a, a.Rate, most)
		}
	}
}

// best returns the most requests a second that a replica divided by s serves, of all powers of two.
func (p *Planner) best(t *testing.T, of func(ctx context.Context, s strategy.Strategy, batch int64) (Row, error), s strategy.Strategy) (rate float64) {
	t.Helper()
	for batch := unit(s); batch <= p.Sequences; batch *= 2 {
		if r, err := of(t.Context(), s, batch); err == nil {
			rate = max(rate, r.Rate)
		}
	}
	return rate
}

// TestApartForARate: as many replicas of each kind as serve it, and none more.
func TestApartForARate(t *testing.T) {
	c := Config{Load: Load{Prompt: 400, Output: 100}, Sequences: 256}
	c.Machine, c.Captured = machine(t, 2, 120e6)
	p := planned(t, c, modelOf(small, nil))
	one, err := p.Apart(t.Context(), 1, nil, nil)
	if err != nil || one.Devices() != 2 || one.Rate != 1 {
		t.Fatalf("one request a second is served by %+v (%v)", one, err)
	}
	rate := 7.5 * min(one.Read.Rate, one.Decode.Rate)
	a, err := p.Apart(t.Context(), rate, nil, nil)
	if err != nil || float64(a.Readers)*a.Read.Rate < rate || float64(a.Decoders)*a.Decode.Rate < rate || float64(a.Readers-1)*a.Read.Rate >= rate || float64(a.Decoders-1)*a.Decode.Rate >= rate {
		t.Errorf("%g requests/s are served by %+v (%v)", rate, a, err)
	}
}

// TestSlowLinks: replicas read no more prompts than they send.
func TestSlowLinks(t *testing.T) {
	c := Config{Load: Load{Prompt: 400, Output: 100}, Sequences: 256}
	c.Machine, c.Captured = machine(t, 2, 120e6)
	for k := range c.Machine.Links {
		c.Machine.Links[k].Bandwidth = 1e6
	}
	p := planned(t, c, modelOf(small, nil))
	a, err := p.Apart(t.Context(), 0, nil, nil)
	if err != nil || a == nil {
		t.Fatal(a, err)
	}
	if seconds := float64(a.Keys) / 1e6; a.Rate > 1/seconds || a.Transfer < seconds || a.TPOT(100) < seconds/99 {
		t.Errorf("%v cross 1 MB/s in %g s, %g requests/s, a token each %g s", a.Keys, a.Transfer, a.Rate, a.TPOT(100))
	}
}

// TestNotApart: there is nothing to put apart where answers are one token or devices one, and nothing is
// served that keeps to no limit.
func TestNotApart(t *testing.T) {
	c := Config{Load: Load{Prompt: 400, Output: 1}, Sequences: 16}
	c.Machine, c.Captured = machine(t, 2, 40e9)
	if _, err := planned(t, c, modelOf(small, nil)).Apart(t.Context(), 0, nil, nil); !errors.Is(err, ErrNotApart) {
		t.Errorf("answers of one token: %v", err)
	}
	c.Output, c.TPOT = 10, 1e-6
	if a, err := planned(t, c, modelOf(small, nil)).Apart(t.Context(), 0, nil, nil); a != nil || err != nil {
		t.Errorf("a token each microsecond by %+v (%v)", a, err)
	}
	c.TPOT = 0
	c.Machine, c.Captured = machine(t, 1, 40e9)
	if a, err := planned(t, c, modelOf(small, nil)).Apart(t.Context(), 0, nil, nil); a != nil || err != nil {
		t.Errorf("apart on one device: %+v (%v)", a, err)
	}
}
