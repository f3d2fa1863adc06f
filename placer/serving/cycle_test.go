package serving

import (
	"math"
	"testing"
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
	l := Load{Prompt: 100, Output: 20}
	if l.past() != 110 || l.together(10) != 1 || l.together(64) != 3 {
		t.Errorf("past %d, together %d and %d, want 110, 1, 3", l.past(), l.together(10), l.together(64))
	}
	for _, bad := range []Load{{}, {Prompt: 1}, {Prompt: 1, Output: MostTokens + 1}, {Prompt: 5, Output: 1, Cached: 5}, {Prompt: 5, Output: 1, TTFT: math.NaN()}, {Prompt: 5, Output: 1, TPOT: -1}} {
		if bad.Validate() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
