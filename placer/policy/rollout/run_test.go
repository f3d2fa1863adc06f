package rollout

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"placer/graph/unit"
	"placer/placer/problem/problemtest"
	"placer/plan"
	"placer/units"
)

// TestMaskOfMemory: a unit too large for a device is never put there, and one too
// large for all is an error that names it.
func TestMaskOfMemory(t *testing.T) {
	p := problemtest.OnP100s(t, "rnnlm2", 2, plan.AllTasks)
	p.Machine.Devices[1].Memory = 1 << 20
	chains := p.Units.Levels[unit.Chain]
	allowed, err := Allowed(p, chains)
	if err != nil {
		t.Fatal(err)
	}
	forbidden := 0
	for u, ops := range chains.Ops {
		var resident units.Bytes
		for _, i := range ops {
			resident += p.Graph.Op(i).Resident
		}
		if resident > 1<<20 {
			forbidden++
			if allowed[u*2+1] {
				t.Errorf("unit %d with %d resident bytes may go to a device of 1 MiB", u, resident)
			}
		}
	}
	if forbidden == 0 {
		t.Fatal("no unit is too large: the case tests nothing")
	}
	p.Machine.Devices[0].Memory = 1 << 20
	if _, err := Allowed(p, chains); !errors.Is(err, ErrTooCoarse) {
		t.Errorf("a unit that fits no device: %v", err)
	}
}

// TestEnded: what was found before learning failed counts, with a note; without it the
// failure is what is returned.
func TestEnded(t *testing.T) {
	p := problemtest.OnP100s(t, "rnnlm:layers=2,unroll=3", 2, plan.AllTasks)
	p.Tasks = plan.Place
	r, n := onChains(t, p)
	why := errors.New("enough")
	if _, err := r.Ended(t.Context(), why); !errors.Is(err, why) {
		t.Errorf("nothing found: %v", err)
	}
	if err := r.Evaluate(t.Context(), [][]int32{make([]int32, n)}); err != nil {
		t.Fatal(err)
	}
	o, err := r.Ended(t.Context(), why)
	if err != nil || len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "enough") {
		t.Errorf("something found: %+v, %v", o, err)
	}
	if o, err := r.Ended(t.Context(), nil); err != nil || len(o.Notes) > 0 {
		t.Errorf("nothing failed: %+v, %v", o, err)
	}
}

// onChains returns a run on p that decides its chains, and their number.
func onChains(t *testing.T, p *plan.Problem) (*Run, int) {
	t.Helper()
	r, err := New(p, "test", 1)
	if err != nil {
		t.Fatal(err)
	}
	d := NewDecoder(p)
	d.On(p.Units.Levels[unit.Chain], false)
	r.Decodes(d.Decode)
	return r, d.Units.NumUnits()
}

// TestFinalScoresAlone: the best plan is one whose score is final, however good an
// estimate is, and that a sample does not fit is never an estimate.
func TestFinalScoresAlone(t *testing.T) {
	p := problemtest.OnP100s(t, "rnnlm:layers=2,unroll=3", 2, plan.AllTasks)
	p.Tasks, p.Rollouts = plan.Place, estimates{p.Evaluator}
	r, n := onChains(t, p)
	one, other := make([]int32, n), make([]int32, n)
	for u := range other {
		other[u] = int32(u % 2)
	}
	if err := r.Evaluate(t.Context(), [][]int32{one, other}); err != nil {
		t.Fatal(err)
	}
	if r.Best.Device[len(r.Best.Device)-1] != 0 || r.Score != r.Scores[0] || !r.Scores[1].Better(r.Score) {
		t.Errorf("best %v of scores %v, of which the first alone is final", r.Score, r.Scores)
	}
}

// TestStoppedRound: of a round that ends with its context what has been evaluated counts.
func TestStoppedRound(t *testing.T) {
	p := problemtest.OnP100s(t, "rnnlm:layers=2,unroll=3", 2, plan.AllTasks)
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	why := errors.New("enough")
	p.Tasks = plan.Place
	p.JudgeBy(&stopping{p.Evaluator, func() { stop(why) }})
	r, n := onChains(t, p)
	if err := r.Evaluate(ctx, [][]int32{make([]int32, n), make([]int32, n), make([]int32, n)}); !errors.Is(err, why) {
		t.Errorf("a stopped round ends with %v, want %v", err, why)
	}
	o, err := r.Outcome(ctx)
	if err != nil || o.Evaluations != 1 || o.Score != r.Scores[0] {
		t.Errorf("%+v, %v after one of three evaluations", o, err)
	}
}

// stopping stops what it evaluates for.
type stopping struct {
	plan.Evaluator
	stop func()
}

func (s *stopping) Evaluate(d plan.Decision) plan.Score {
	defer s.stop()
	return s.Evaluator.Evaluate(d)
}

// estimates are final for the first sample of a round, the others look good.
type estimates struct{ plan.Evaluator }

func (estimates) Parallel() int { return 1 }

func (estimates) Refine(scores []plan.Score, _ func(k int) plan.Decision) []bool {
	final := make([]bool, len(scores))
	final[0] = true
	for k := range scores[1:] {
		scores[k+1].Value = 1e-9
	}
	return final
}

// TestWorkersThatJoin: who joins between rounds is kept busy from the next round on, who
// leaves is not, and the scores are those of a run alone.
func TestWorkersThatJoin(t *testing.T) {
	p := problemtest.OnP100s(t, "rnnlm:layers=2,unroll=3", 2, plan.AllTasks)
	p.Tasks = plan.Place
	alone, n := onChains(t, p)
	actions := make([][]int32, 12)
	for k := range actions {
		actions[k] = make([]int32, n)
		for u := range actions[k] {
			actions[k][u] = int32((u + k) % 2)
		}
	}
	if err := alone.Evaluate(t.Context(), actions); err != nil {
		t.Fatal(err)
	}
	far := &helpers{}
	helped := *p
	helped.Rollouts = helper{p.Evaluator.Clone(), far}
	r, _ := onChains(t, &helped)
	for _, there := range []int{1, 4, 2} {
		far.begin(there)
		if err := r.Evaluate(t.Context(), actions); err != nil {
			t.Fatal(err)
		}
		if far.most != there {
			t.Errorf("%d evaluations at once, want %d", far.most, there)
		}
		if !slices.Equal(r.Scores, alone.Scores) || r.Score != alone.Score {
			t.Errorf("scores with %d at once differ from those of one alone", there)
		}
	}
}

// helpers evaluate as many at once as there are of them; the first of a round waits for
// the others.
type helpers struct {
	mu          sync.Mutex
	there       int
	under, most int
	all         chan struct{} // is closed when all are at work
}

func (x *helpers) begin(there int) {
	x.there, x.most, x.all = there, 0, make(chan struct{})
}

// helper is one goroutine's.
type helper struct {
	plan.Evaluator
	*helpers
}

func (x helper) Parallel() int                                               { return x.there }
func (helper) Refine([]plan.Score, func(k int) plan.Decision) (final []bool) { return nil }
func (x helper) Clone() plan.Evaluator                                       { return helper{x.Evaluator.Clone(), x.helpers} }

func (x helper) Evaluate(d plan.Decision) plan.Score {
	x.mu.Lock()
	x.under++
	if x.most = max(x.most, x.under); x.under == x.there {
		select {
		case <-x.all:
		default:
			close(x.all)
		}
	}
	x.mu.Unlock()
	select {
	case <-x.all:
	case <-time.After(time.Second): // they do not come
	}
	s := x.Evaluator.Evaluate(d)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.under--
	return s
}

func TestFitSamples(t *testing.T) {
	for _, c := range []struct{ samples, evaluations, want int }{{64, 0, 64}, {64, 512, 64}, {64, 511, 32}, {16, 10, 8}, {4, 10, 4}} {
		if got := FitSamples(c.samples, c.evaluations); got != c.want {
			t.Errorf("%d samples in %d evaluations become %d, want %d", c.samples, c.evaluations, got, c.want)
		}
	}
}
