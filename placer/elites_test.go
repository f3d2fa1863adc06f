package placer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/gonet"
	"placer/graph/unit"
	"placer/nn"
	"placer/plan"
)

// TestElites: the frequencies are those of the best of the last samples, counted
// by hand.
func TestElites(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	const levels, window = 3, 20
	x := &elites{ImitationConfig: ImitationConfig{Window: window, Elite: 0.25, Mix: 0.5}}
	for _, at := range []int{4, 0, 2} {
		x.choices = append(x.choices, choice{at: at, levels: levels})
	}
	var actions [][]int32
	var scores []plan.Score
	for range 5 {
		actions, scores = nil, nil
		for range 8 {
			a := make([]int32, 6)
			for k := range a {
				a[k] = int32(r.IntN(levels))
			}
			actions = append(actions, a)
			scores = append(scores, plan.Score{Seconds: float64(1 + r.IntN(6))})
		}
		scores[3].Overflow, scores[3].Seconds = 1, 0.1 // does not fit
		x.add(actions, scores)
	}
	if len(x.recent) != window {
		t.Fatalf("%d samples kept, want %d", len(x.recent), window)
	}
	if got := x.recent[window-1].level; !slices.Equal(got, []int32{actions[7][4], actions[7][0], actions[7][2]}) {
		t.Errorf("the last sample has levels %v of %v", got, actions[7])
	}
	// One sample after another: the best that is left.
	want := make([]float64, len(x.choices)*levels)
	taken := make([]bool, window)
	for range 5 {
		best := -1
		for k, s := range x.recent {
			if !taken[k] && s.score.Feasible() && (best < 0 || s.score.Seconds < x.recent[best].score.Seconds) {
				best = k
			}
		}
		taken[best] = true
		for c, l := range x.recent[best].level {
			want[c*levels+int(l)] += 0.2
		}
	}
	best, got := x.best(), make([]float64, levels)
	for i := range x.choices {
		frequencies(best, x.weights(len(best)), i, got)
		for l, f := range got {
			if math.Abs(f-want[i*levels+l]) > 1e-12 {
				t.Errorf("choice %d, level %d: frequency %g, want %g", i, l, f, want[i*levels+l])
			}
		}
	}
}

// TestLean: after a round the chances of every choice are a mixture of what they
// were and the elites' frequencies; fusion that no class has and devices that a
// unit cannot have are as they were.
func TestLean(t *testing.T) {
	for _, tasks := range []plan.Tasks{plan.Fuse, plan.Schedule | plan.Fuse, plan.Place | plan.Schedule | plan.Fuse} {
		p := problem(t, "trfxl2", 2)
		p.Tasks, p.Device = tasks, make([]uint8, p.Graph.NumOps())
		c := DefaultPolicy().forTasks(p)
		env := newEnvironment(p, c)
		stages := curricula(p.Graph, p.Units, unit.Chain, p.Evaluator.OpSeconds(0), 2)[0]
		if tasks == plan.Fuse {
			stages = c.Fusion.fusionStages(stages, env.plain, p.Units, true)
		}
		env.fit([][]stage{stages}, 3)
		last := stages[len(stages)-1]
		if err := env.decideOn(p, last); err != nil {
			t.Fatal(err)
		}
		if tasks == plan.Fuse && len(env.class.ops) <= len(env.plain.ops) {
			t.Fatalf("%d fine classes of %d", len(env.class.ops), len(env.plain.ops))
		}
		policy, err := NewPolicy(c)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(8, 2))
		backend, err := c.backend(nil)
		if err != nil {
			t.Fatal(err)
		}
		if env.allowed != nil {
			env.allowed[2] = false
		}
		batch := policy.batch(p, c, env, last, r)
		if policy.network, err = gonet.New(c.network(batch.X.D, env.decoder), r, backend); err != nil {
			t.Fatal(err)
		}
		batch.Free = policy.network.AddFree("test", batch.X.N)
		network := policy.network.Config().Decision.Tasks()
		x := &elites{ImitationConfig: c.imitation(tasks), choices: env.choices(network)}
		before, err := policy.logits(batch)
		if err != nil {
			t.Fatal(err)
		}
		var actions [][]int32
		scores := make([]plan.Score, 10)
		for k := range scores {
			var a []int32
			for h, task := range network {
				for i := range env.part.NumUnits() * task.Kinds {
					l := r.IntN(task.Levels)
					for before[h][i/task.Kinds][i%task.Kinds*task.Levels+l] == nn.Masked {
						l = r.IntN(task.Levels)
					}
					a = append(a, int32(l))
				}
			}
			actions, scores[k] = append(actions, a), plan.Score{Seconds: float64(k + 1)}
		}
		x.add(actions, scores)
		if err := policy.lean(batch, x, nil, 0); err != nil {
			t.Fatal(err)
		}
		after, err := policy.logits(batch)
		if err != nil {
			t.Fatal(err)
		}
		imitated := map[int]int{} // place in a decision to choice
		for i, c := range x.choices {
			imitated[c.at] = i
		}
		at, best := 0, x.best()
		for h, task := range network {
			old, now, f := make([]float64, task.Levels), make([]float64, task.Levels), make([]float64, task.Levels)
			for i := range env.part.NumUnits() * task.Kinds {
				u, lo := i/task.Kinds, i%task.Kinds*task.Levels
				nn.SoftmaxRow(old, before[h][u][lo:lo+task.Levels])
				nn.SoftmaxRow(now, after[h][u][lo:lo+task.Levels])
				choice, learnt := imitated[at+i]
				if learnt {
					frequencies(best, x.weights(len(best)), choice, f)
				}
				for l := range old {
					want := old[l]
					if learnt {
						want = (1-x.Mix)*old[l] + x.Mix*f[l]
					}
					if math.Abs(now[l]-want) > 1e-5 {
						t.Fatalf("%v: choice %d of %s, level %d: chance %g, was %g, want %g", tasks, i, task.Name, l, now[l], old[l], want)
					}
				}
			}
			at += env.part.NumUnits() * task.Kinds
		}
		if env.class != nil && len(x.choices) != at-env.part.NumUnits()*env.kinds+len(env.slot) || env.class == nil && len(x.choices) != at {
			t.Errorf("%v: %d choices of %d are imitated", tasks, len(x.choices), at)
		}
	}
}

// TestSplit: the parts of a class are its ops with one label, in order, and a
// limit is kept.
func TestSplit(t *testing.T) {
	p := problem(t, "trfxl2", 2)
	x := newClasses(p.Graph, p.Evaluator.OpSeconds(0), 384)
	time := times(p.Units)
	if low, high := slices.Min(time), slices.Max(time); low != 0 || high == 0 {
		t.Fatalf("places in time from %d to %d", low, high)
	}
	y := x.split(time, 1<<20)
	n := 0
	for c, ops := range y.ops {
		n += len(ops)
		for k, i := range ops {
			if y.of[i] != int32(c) || x.of[i] != x.of[ops[0]] || time[i] != time[ops[0]] || k > 0 && i <= ops[k-1] {
				t.Fatalf("class %d holds op %d of class %d and time %d", c, i, x.of[i], time[i])
			}
		}
	}
	for c, ops := range x.ops {
		labels, parts := map[int32]bool{}, map[int32]bool{}
		for _, i := range ops {
			n--
			labels[time[i]], parts[y.of[i]] = true, true
		}
		if len(labels) != len(parts) {
			t.Errorf("class %d has %d parts of %d places in time", c, len(parts), len(labels))
		}
	}
	if n != 0 {
		t.Errorf("%d ops more in the parts than in the whole", n)
	}
	if most := len(y.ops); x.split(time, most) == nil || x.split(time, most-1) != nil {
		t.Errorf("%d parts are not what the limit says", most)
	}
	if z := x.apart(time, len(y.ops)-1); z != x {
		t.Errorf("%d classes where %d are too many", len(z.ops), len(y.ops))
	}
}
