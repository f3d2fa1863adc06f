package serving

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/formats/decoder"
	"placer/graph/strategy"
	"placer/hw"
	"placer/placer/problem"
	"placer/placer/strategies"
	"placer/units"
	"placer/workloads"
)

const small = `{"model_type": "llama", "dtype": "bfloat16", "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
	"num_key_value_heads": 4, "intermediate_size": 1024, "vocab_size": 2000}`

// modelOf is the decoder of a config.json, with sizes of its own besides.
func modelOf(config string, dims map[string]int64) Model {
	return func(batch, seq, past int64) (*graph.Graph, error) {
		all := map[string]int64{"batch": batch, "seq": seq}
		if past > 0 {
			all["past"] = past
		}
		for k, n := range dims {
			all[k] = n
		}
		x, err := decoder.ImportConfig([]byte(config), "small", decoder.Options{Dims: all})
		if err != nil {
			return nil, err
		}
		return x.Graph, nil
	}
}

// machine returns n A100 with so much memory each, and the same replaying graphs.
func machine(t *testing.T, n int, memory units.Bytes) (launched, captured *hw.Machine) {
	t.Helper()
	m, err := hw.Load("a100")
	if err != nil {
		t.Fatal(err)
	}
	if m, err = m.Take(n, false); err != nil {
		t.Fatal(err)
	}
	for k := range m.Devices {
		m.Devices[k].Memory = memory
	}
	return m, m.Captured()
}

func plan(t *testing.T, c Config, model Model) []Row {
	t.Helper()
	return planned(t, c, model).Rows(t.Context(), nil)
}

// planned returns the planner of a model under c.
func planned(t *testing.T, c Config, model Model) *Planner {
	t.Helper()
	p, err := NewPlanner(model, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLimits: rows keep to the limits, and where memory or a limit of time is what ends a batch, one that
// is larger by what the search tells apart does not keep to them.
func TestLimits(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 7))
	model := modelOf(small, nil)
	ends := map[Limit]int{}
	for k := range 8 {
		c := Config{Load: Load{Prompt: 1 + r.Int64N(600), Output: 2 + r.Int64N(200)}, Sequences: 1 + r.Int64N(100)}
		memory := units.Bytes(40e9)
		switch k % 4 { // one of them ends nearly all batches where they are drawn together
		case 0:
			memory = units.Bytes(40e6 + r.Float64()*200e6)
		case 1:
			c.Sequences, c.TPOT = 2048, 4e-4+8e-4*r.Float64()
		case 2:
			c.Sequences, c.TTFT = 2048, 1e-3+1e-3*r.Float64()
		case 3:
			c.Sequences = 1 << 14
		}
		c.Machine, c.Captured = machine(t, 2, memory)
		p := planned(t, c, model)
		for _, x := range plan(t, c, model) {
			if x.Why != "" {
				continue
			}
			ends[x.Limit]++
			if c.TPOT > 0 && x.TPOT > c.TPOT || c.TTFT > 0 && x.TTFT > c.TTFT || x.Fullest > c.Machine.Devices[0].Memory || x.Batch > c.Sequences {
				t.Errorf("%+v: row %+v keeps to no limit", c.Load, x)
			}
			if x.Limit == ByGain || x.Limit == ByServer {
				continue
			}
			more := x.Batch + max(unit(x.Strategy), x.Batch/15/unit(x.Strategy)*unit(x.Strategy)+unit(x.Strategy))
			if _, err := p.batch(t.Context(), x.Strategy, more); err == nil {
				t.Errorf("%+v: %v ends at %d sequences by %s, %d are served too", c.Load, x.Strategy, x.Batch, x.Limit, more)
			}
		}
	}
	if len(ends) < 4 {
		t.Errorf("batches end by %v alone", ends)
	}
}

// TestKeysAndValues: what a sequence more takes is its keys and values of the tokens that it has in the
// mean, and half of it where these are kept in 8 bits.
func TestKeysAndValues(t *testing.T) {
	l := Load{Prompt: 3000, Output: 200}
	one := float64(2 * 4 * 4 * 64 * 2 * l.past()) // keys and values, layers, heads, columns, bytes, tokens
	for bits, want := range map[int64]float64{16: one, 8: one / 2} {
		c := Config{Load: l, Sequences: 64}
		c.Machine, c.Captured = machine(t, 1, 40e9)
		p := planned(t, c, modelOf(small, map[string]int64{"cache_bits": bits}))
		a, err := p.batch(t.Context(), strategy.Single(1), 16)
		b, err2 := p.batch(t.Context(), strategy.Single(1), 32)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if got := float64(b.Fullest-a.Fullest) / 16; math.Abs(got-want) > 0.02*want {
			t.Errorf("%d bits: a sequence takes %.0f bytes, want %.0f", bits, got, want)
		}
	}
}

// TestStepsAreThoseOfStrategies: a decoding step takes what the comparison of strategies says of the same
// batch and tokens.
func TestStepsAreThoseOfStrategies(t *testing.T) {
	c := Config{Load: Load{Prompt: 500, Output: 100}, Sequences: 16}
	c.Machine, c.Captured = machine(t, 2, 40e9)
	model := modelOf(small, nil)
	s, err := strategy.Parse("tp=2")
	if err != nil {
		t.Fatal(err)
	}
	c.Strategy = &s
	row := plan(t, c, model)[0]
	g, err := model(row.Batch, 1, 550)
	if err != nil {
		t.Fatal(err)
	}
	x, err := strategies.NewComparison(problem.Source{Graph: g}, func(n int64) (*graph.Graph, error) { return model(n, 1, 550) }, c.Captured,
		strategies.Config{Batch: row.Batch, Strategy: &s, OneShot: true, Clock: func() float64 { return 0 }})
	if err != nil {
		t.Fatal(err)
	}
	if want := x.Rows(t.Context(), nil)[0].Seconds; row.Batch != 16 || row.Decode != want {
		t.Errorf("%d sequences decode in %g s, want 16 in %g", row.Batch, row.Decode, want)
	}
}

// TestMoreIsNeverLess: with more memory, and under looser limits, no row serves less but for what is no
// gain.
func TestMoreIsNeverLess(t *testing.T) {
	model := modelOf(small, nil)
	rate := func(memory units.Bytes, tpot float64) (all []float64) {
		c := Config{Load: Load{Prompt: 400, Output: 100, TPOT: tpot}, Sequences: 512}
		c.Machine, c.Captured = machine(t, 4, memory)
		for _, r := range plan(t, c, model) {
			all = append(all, r.Rate)
		}
		return all
	}
	less, more, late := rate(100e6, 6e-4), rate(400e6, 6e-4), rate(400e6, 2e-3)
	for k := range less {
		if more[k] < less[k]/gain || late[k] < more[k]/gain {
			t.Errorf("row %d serves %g, with more memory %g, later %g", k, less[k], more[k], late[k])
		}
	}
}

// TestCachedPrompts: what is cached need not be read.
func TestCachedPrompts(t *testing.T) {
	c := Config{Load: Load{Prompt: 4000, Output: 10}, Sequences: 8}
	c.Machine, c.Captured = machine(t, 1, 40e9)
	whole := plan(t, c, modelOf(small, nil))[0]
	c.Cached = 3900
	cached := plan(t, c, modelOf(small, nil))[0]
	if cached.Prefill > 0.7*whole.Prefill || cached.Decode != whole.Decode {
		t.Errorf("with 3,900 tokens cached a prompt takes %g s, %g without; decoding %g and %g", cached.Prefill, whole.Prefill, cached.Decode, whole.Decode)
	}
}

// TestWorkers: rows do not depend on how many are simulated at once, and are told in their order.
func TestWorkers(t *testing.T) {
	c := Config{Load: Load{Prompt: 300, Output: 50}, Sequences: 64}
	c.Machine, c.Captured = machine(t, 4, 200e6)
	one := plan(t, c, modelOf(small, nil))
	c.Workers = 3
	var told []Row
	rows := planned(t, c, modelOf(small, nil)).Rows(t.Context(), func(r *Row) { told = append(told, *r) })
	if !reflect.DeepEqual(one, rows) || !reflect.DeepEqual(rows, told) {
		t.Errorf("one worker %+v, three %+v, told %+v", one, rows, told)
	}
	names := ""
	for _, r := range rows {
		names += fmt.Sprintf("%v; ", r.Strategy)
	}
	if want := "one device; tp=2; 1f1b=2 mb=2; tp=4; 1f1b=2 tp=2 mb=2; 1f1b=4 mb=4; "; names != want {
		t.Errorf("divisions %s, want %s", names, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if rows = planned(t, c, modelOf(small, nil)).Rows(ctx, func(*Row) { cancel() }); len(rows) != 1 {
		t.Errorf("cancelled behind the first row: %d rows", len(rows))
	}
}

// TestBest: the most for each device, or what serves a rate with the fewest.
func TestBest(t *testing.T) {
	rows := []Row{{Devices: 1, Rate: 2}, {Devices: 2, Rate: 5}, {Devices: 3, Rate: 9}, {Devices: 1, Rate: 50, Why: "lacks 1 B"}}
	for rate, want := range map[float64]int{0: 2, 1: 0, 4.5: 1, 5.5: 2, 9.5: 1} {
		if got := Best(rows, rate); got != &rows[want] {
			t.Errorf("at %g requests/s the best is %+v, want row %d", rate, got, want)
		}
	}
	if Best(rows[3:], 0) != nil {
		t.Error("what serves nothing is the best")
	}
}

func TestRefused(t *testing.T) {
	c := Config{Load: Load{Prompt: 30, Output: 5}, Sequences: 4}
	c.Machine, c.Captured = machine(t, 1, 40e9)
	if _, err := NewPlanner(func(batch, _, _ int64) (*graph.Graph, error) {
		return workloads.BuildBatch("rnnlm:layers=1,unroll=2,hidden=64,vocab=100", batch)
	}, c); err == nil || !strings.Contains(err.Error(), "the step trains") {
		t.Errorf("a training step: %v", err)
	}
	s, err := strategy.Parse("tp=2")
	if err != nil {
		t.Fatal(err)
	}
	c.Strategy = &s
	if _, err := NewPlanner(modelOf(small, nil), c); err == nil || err.Error() != "tp=2 is for 2 devices, the machine has 1" {
		t.Errorf("too few devices: %v", err)
	}
	c.Strategy = nil
	c.Machine, c.Captured = machine(t, 2, 40e9)
	c.Machine.Devices[1].Memory /= 2
	if _, err := NewPlanner(modelOf(small, nil), c); err == nil || !strings.Contains(err.Error(), "serving wants devices that are alike") {
		t.Errorf("devices that are not alike: %v", err)
	}
	c.Machine, c.Captured = machine(t, 1, 5e6)
	if rows := plan(t, c, modelOf(small, nil)); !strings.HasPrefix(rows[0].Why, "lacks ") {
		t.Errorf("a model larger than memory: %+v", rows[0])
	}
	c.Sequences = 0
	if _, err := NewPlanner(modelOf(small, nil), c); err == nil {
		t.Error("no sequence at all is taken")
	}
}
