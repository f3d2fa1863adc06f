package serving

import (
	"math"
	"testing"

	"placer/graph/strategy"
)

// TestCycle: 12 sequences decode answers of 4 tokens in 3 steps of 1 s, and 12 prompts are read in 4 steps
// of 2 s: 11 s for 12 requests.
func TestCycle(t *testing.T) {
	c := cycle{load: Load{Prompt: 10, Output: 4}, batch: 12, prompts: 3, decode: 1, prefill: 2, latency: 2.5}
	for _, x := range []struct {
		name      string
		got, want float64
	}{{"seconds", c.seconds(), 11}, {"rate", c.rate(), 12.0 / 11}, {"tpot", c.tpot(), 11.0 / 3}, {"ttft", c.ttft(), 3.5}} {
		if math.Abs(x.got-x.want) > 1e-12 {
			t.Errorf("%s is %g, want %g", x.name, x.got, x.want)
		}
	}
	// Little's law: as many sequences are decoding as the rate times how long an answer takes.
	if n := c.rate() * c.tpot() * 3; math.Abs(n-12) > 1e-12 {
		t.Errorf("%g sequences at once, want 12", n)
	}
}

// TestAnswersOfOneToken: reading the prompt brings it, nothing decodes.
func TestAnswersOfOneToken(t *testing.T) {
	c := cycle{load: Load{Prompt: 10, Output: 1}, batch: 8, prompts: 8, prefill: 2, latency: 3}
	if c.rate() != 4 || c.tpot() != 0 || c.ttft() != 3 {
		t.Errorf("rate %g, tpot %g, ttft %g, want 4, 0, 3", c.rate(), c.tpot(), c.ttft())
	}
}

func TestLoad(t *testing.T) {
	l, one, pipeline, experts := Load{Prompt: 100, Output: 20}, strategy.Single(1), split(4, 1), strategy.Single(1)
	experts.Data, experts.Experts = 8, 8
	for _, c := range []struct {
		load      Load
		s         strategy.Strategy
		batch     int64
		wantPast  int64
		wantReads int64
	}{
		{l, one, 10, 110, 1},
		{l, one, 64, 110, 3},
		{l, one, 4000, 110, 81}, // 8,192 tokens
		{l, pipeline, 64, 110, 1},
		{l, pipeline, 200, 110, 8},
		{l, experts, 8, 110, 8},
		{Load{Prompt: 9000, Output: 1}, one, 64, 9000, 1},
		{Load{Prompt: 9000, Output: 1}, experts, 64, 9000, 8},
		{Load{Prompt: 9000, Output: 1, Cached: 8000}, one, 64, 9000, 8},
	} {
		if past, reads := c.load.past(), c.load.together(c.batch, c.s); past != c.wantPast || reads != c.wantReads {
			t.Errorf("%+v, %v: behind %d tokens, %d prompts together, want %d and %d", c.load, c.s, past, reads, c.wantPast, c.wantReads)
		}
	}
	for _, bad := range []Load{{}, {Prompt: 1}, {Prompt: 1, Output: MostTokens + 1}, {Prompt: 5, Output: 1, Cached: 5}, {Prompt: 5, Output: 1, TTFT: math.NaN()}, {Prompt: 5, Output: 1, TPOT: -1}} {
		if bad.Validate() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
