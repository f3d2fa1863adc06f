package sequential

import (
	"context"
	"math"
	"slices"
	"testing"
)

// begun returns a quick tuning of c at its beginning.
func begun(t *testing.T, c Case) *tuning {
	t.Helper()
	return begunBy(t, policy(t, 16), c)
}

// begunBy is begun for a policy.
func begunBy(t *testing.T, by *Policy, c Case) *tuning {
	t.Helper()
	p, err := c.Problem()
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewFeatures(p)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Tuner{Policy: by, Config: quickTune()}.begin(context.Background(), w, crossEntropy{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFirstStepChoosesLevel: a run begins with cells where their samples hold the
// best, with chains elsewhere.
func TestFirstStepChoosesLevel(t *testing.T) {
	for _, of := range []Case{small, {Workload: "rnnlm:layers=2,unroll=3", GPU: "p100", Devices: 2}} {
		p, err := of.Problem()
		if err != nil {
			t.Fatal(err)
		}
		w, err := NewFeatures(p)
		if err != nil {
			t.Fatal(err)
		}
		tuner := Tuner{Policy: policy(t, 16), Config: quickTune()}
		var bests []float64
		for l := range level(len(levels)) {
			r, err := tuner.begin(context.Background(), w, crossEntropy{})
			if err != nil {
				t.Fatal(err)
			}
			must(t, r.startLevel(t.Context(), l))
			all, _, _ := r.sample(context.Background(), 16)
			best := math.Inf(1)
			for _, x := range all {
				best = min(best, x.Seconds)
			}
			bests = append(bests, best)
		}
		r, err := tuner.begin(context.Background(), w, crossEntropy{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.tryLevels(context.Background(), 48); err != nil {
			t.Fatal(err)
		}
		want := atChains
		if bests[atCells] < min(bests[atSegments], bests[atChains]) {
			want = atCells
		}
		if r.state.Start != want || r.logits.level != want {
			t.Errorf("%s: began with level %d, the bests are %v", of.Workload, r.state.Start, bests)
		}
		if r.state.Evaluations != DefaultSamples+48 || len(r.elite) == 0 || len(r.elite) > r.pace.learned(0) {
			t.Errorf("%s: %d evaluations, %d elite", of.Workload, r.state.Evaluations, len(r.elite))
		}
	}
}

// TestFirstStepChoosesTimeSteps: where time steps hold the best zero-shot sample of
// an unrolled network they are tried, the run begins with them and goes on with
// cells, and learns from no placement that is none of theirs.
func TestFirstStepChoosesTimeSteps(t *testing.T) {
	r := begun(t, Case{Workload: "trfxl:layers=4,batch=16,sequence=128,segment=32,hidden=256,ffn=512,heads=4,head_dim=64,vocab=500", GPU: "p100", Devices: 4})
	if best := Best(r.zeroShot); best.level != atTimeSteps {
		t.Fatalf("the best zero-shot sample is of level %d", best.level)
	}
	if _, err := r.tryLevels(context.Background(), 64); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.tried, []level{atCells, atSegments, atChains, atTimeSteps}) || r.state.Start != atTimeSteps || r.logits.s.name != "time step" {
		t.Errorf("tried %v, began with level %d", r.tried, r.state.Start)
	}
	for _, x := range r.elite {
		of := slices.Repeat([]int{-1}, r.logits.s.part.NumUnits())
		for c, d := range x.Cells {
			if u := r.logits.cell[c]; of[u] >= 0 && of[u] != int(d) {
				t.Fatalf("unit %d is on devices %d and %d", u, of[u], d)
			} else {
				of[u] = int(d)
			}
		}
	}
}

// TestSoonestAreEvaluated: what is evaluated of a round are the candidates whose own
// schedules end soonest.
func TestSoonestAreEvaluated(t *testing.T) {
	r := begun(t, small)
	must(t, r.startLevel(t.Context(), 0))
	const k = 10
	made := r.candidates(context.Background(), k*r.pace.made(0, 0))
	slowest, device := 0.0, make([]uint8, len(r.cells.Of))
	evaluated, _, _ := r.sample(context.Background(), k)
	clock := func(cells []byte) float64 {
		i := slices.IndexFunc(made, func(x candidate) bool { return slices.Equal(x.cells, cells) })
		if i < 0 {
			t.Fatal("a placement was evaluated that is no candidate")
		}
		return made[i].clock
	}
	for _, x := range evaluated {
		slowest = max(slowest, clock(x.Cells))
		r.expand(x.Cells, device)
		if got := r.features.problem.Evaluate(device); got != x.score() {
			t.Errorf("%v was evaluated as %v", got, x.score())
		}
	}
	sooner := 0
	for _, x := range made {
		if x.clock < slowest {
			sooner++
		}
	}
	if len(evaluated) != k || sooner >= k {
		t.Errorf("%d evaluated, %d candidates end before the last of them", len(evaluated), sooner)
	}
}
