package pipedreamplan

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// seconds returns what a pipeline of these stages on workers of one level takes per
// minibatch.
func seconds(c *Chain, stages []Stage, bandwidth float64) (worst float64) {
	for _, s := range stages {
		var compute, w float64
		for l := s.From; l < s.To; l++ {
			compute, w = compute+c.Seconds[l], w+c.Parameters[l]
		}
		m := float64(s.Replicas)
		worst = max(worst, compute/m, 2*(m-1)*w/bandwidth/m)
		if s.From > 0 {
			worst = max(worst, 2*c.Crossing[s.From-1]/bandwidth)
		}
	}
	return worst
}

// slowest returns the largest of a plan's costs.
func slowest(p *Plan) (worst float64) {
	for _, x := range p.Costs {
		worst = max(worst, x.Compute, x.Sync, x.Transfer)
	}
	return worst
}

func drawChain(t *rapid.T) *Chain {
	c := &Chain{}
	for range rapid.IntRange(1, 6).Draw(t, "layers") {
		c.Seconds = append(c.Seconds, float64(rapid.IntRange(0, 20).Draw(t, "seconds")))
		c.Parameters = append(c.Parameters, float64(rapid.IntRange(0, 20).Draw(t, "parameters")))
		c.Crossing = append(c.Crossing, float64(rapid.IntRange(0, 10).Draw(t, "crossing")))
	}
	return c
}

// naive returns the least time of layers i..j on at most m workers of the
// outermost level, by the recurrence in words and without tables.
func naive(c *Chain, levels []Level, i, j, m int) float64 {
	if len(levels) == 0 {
		var sum float64
		for l := i; l <= j; l++ {
			sum += c.Seconds[l]
		}
		return sum
	}
	top, below := levels[len(levels)-1], levels[:len(levels)-1]
	best := math.Inf(1)
	for last := 1; last <= m; last++ {
		for from := i; from <= j; from++ {
			var w float64
			for l := from; l <= j; l++ {
				w += c.Parameters[l]
			}
			width := 1
			if len(below) > 0 {
				width = below[len(below)-1].Width
			}
			v := max(naive(c, below, from, j, width), 2*float64(last-1)*w/top.Bandwidth) / float64(last)
			if from > i {
				if last == m {
					continue
				}
				v = max(v, 2*c.Crossing[from-1]/top.Bandwidth, naive(c, levels, i, from-1, m-last))
			}
			best = min(best, v)
		}
	}
	return best
}

func TestSolveAgainstRecurrence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawChain(t)
		var levels []Level
		for range rapid.IntRange(1, 3).Draw(t, "levels") {
			levels = append(levels, Level{rapid.IntRange(1, 3).Draw(t, "width"), float64(rapid.IntRange(1, 8).Draw(t, "bandwidth"))})
		}
		p, err := Solve(c, levels)
		if err != nil {
			t.Fatal(err)
		}
		if want := naive(c, levels, 0, c.NumLayers()-1, levels[len(levels)-1].Width); math.Abs(p.Seconds-want) > 1e-9 {
			t.Fatalf("%v s, want %v", p.Seconds, want)
		}
		workers, next := 0, 0
		for _, s := range p.Stages {
			if s.From != next || s.To <= s.From || s.Replicas < 1 {
				t.Fatalf("stages %v of %d layers", p.Stages, c.NumLayers())
			}
			next = s.To
			workers += s.Replicas
		}
		all := 1
		for _, l := range levels {
			all *= l.Width
		}
		if next != c.NumLayers() || workers > all {
			t.Fatalf("stages %v of %d layers on %d workers", p.Stages, c.NumLayers(), all)
		}
		// Several stages that are repeated together are synchronised together by the recurrence, one by
		// one by their costs.
		if got := slowest(p); got > p.Seconds+1e-9 || len(levels) == 1 && got < p.Seconds-1e-9 {
			t.Fatalf("stages %v take %v s by their costs %v, not %v", p.Stages, got, p.Costs, p.Seconds)
		}
		if len(levels) == 1 && math.Abs(seconds(c, p.Stages, levels[0].Bandwidth)-p.Seconds) > 1e-9 {
			t.Fatalf("stages %v take %v s, not %v", p.Stages, seconds(c, p.Stages, levels[0].Bandwidth), p.Seconds)
		}
		var replicas []int
		for _, s := range p.Stages {
			replicas = append(replicas, s.Replicas)
		}
		cut, err := Cut(c, replicas, levels)
		if err != nil || cut.Seconds > p.Seconds+1e-9 || slowest(cut) > cut.Seconds+1e-9 {
			t.Fatalf("the best cut into %v: %v, error %v; the best plan takes %v s", replicas, cut, err, p.Seconds)
		}
		nested := nest(c, replicas, levels)
		if nested == nil || math.Abs(nested.Seconds-p.Seconds) > 1e-9 || slowest(nested) > nested.Seconds+1e-9 {
			t.Fatalf("the best nested cut into %v: %v, the best plan takes %v s", replicas, nested, p.Seconds)
		}
	})
}

// Cut is no better than any cut, and one of them.
func TestCutAgainstAllCuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawChain(t)
		replicas := rapid.SliceOfN(rapid.IntRange(1, 4), 1, c.NumLayers()).Draw(t, "replicas")
		bandwidth := float64(rapid.IntRange(1, 8).Draw(t, "bandwidth"))
		best := math.Inf(1)
		var walk func(from, k int, stages []Stage)
		walk = func(from, k int, stages []Stage) {
			if k == len(replicas)-1 {
				best = min(best, seconds(c, append(stages, Stage{from, c.NumLayers(), replicas[k]}), bandwidth))
				return
			}
			for to := from + 1; to+len(replicas)-k-1 <= c.NumLayers(); to++ {
				walk(to, k+1, append(stages, Stage{from, to, replicas[k]}))
			}
		}
		walk(0, 0, nil)
		p, err := Cut(c, replicas, []Level{{8, bandwidth}})
		if err != nil || math.Abs(p.Seconds-best) > 1e-9 || math.Abs(seconds(c, p.Stages, bandwidth)-best) > 1e-9 {
			t.Fatalf("%v, error %v, want %v s", p, err, best)
		}
	})
}

func TestErrors(t *testing.T) {
	c := &Chain{Seconds: []float64{1}, Parameters: []float64{1}, Crossing: []float64{0}}
	if _, err := Solve(c, nil); err == nil {
		t.Error("no workers: no error")
	}
	if _, err := Solve(c, []Level{{0, 1}}); err == nil {
		t.Error("a level of no workers: no error")
	}
	if _, err := Cut(c, []int{1, 1}, []Level{{2, 1}}); err == nil {
		t.Error("two stages of one layer: no error")
	}
	if _, err := Solve(&Chain{Seconds: []float64{-1}, Parameters: []float64{1}, Crossing: []float64{0}}, []Level{{1, 1}}); err == nil {
		t.Error("negative time: no error")
	}
}

// Stages whose workers follow one another: replicas and cuts cost what the level
// costs at which they lie.
func TestInOrder(t *testing.T) {
	levels := []Level{{Width: 4, Bandwidth: 8}, {Width: 2, Bandwidth: 1}}
	type place struct{ sync, transfer float64 }
	for _, x := range []struct {
		name     string
		replicas []int
		want     []place
	}{
		{"within a server", []int{2, 2}, []place{{2. / 8 / 2, 2. / 8}, {2. / 8 / 2, 2. / 8}}},
		{"a server each", []int{4, 4}, []place{{2 * 3. / 8 / 4, 2. / 8}, {2 * 3. / 8 / 4, 2}}},
		{"over both", []int{8}, []place{{2. / 1 / 2, 2}}},
		{"unevenly over both", []int{7, 1}, []place{{2. / 1 / 2, 2}, {0, 2}}},
		{"more than there are", []int{12}, []place{{2 * 2. / 1 / 3, 2}}},
	} {
		for k, s := range inOrder(x.replicas, levels) {
			if got := (place{s.sync, s.transfer}); got != x.want[k] {
				t.Errorf("%s: stage %d costs %v, want %v", x.name, k, got, x.want[k])
			}
		}
	}
}
