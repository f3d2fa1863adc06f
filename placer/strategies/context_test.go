package strategies

import (
	"context"
	"math"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/strategy"
	"placer/hw"
	"placer/units"
)

// longer is a step of 64 tokens a sample, whose heads share keys and values two by two.
const longer = "llama:layers=3,hidden=256,heads=8,kv_heads=4,ffn=512,seq=64,vocab=512,master_weights=true"

// TestTokensShared: of a step whose replicas share tokens out, products add up to those of the whole
// batch, attention too, and what is gathered and scattered is keys and values of all tokens and their
// gradients: in each pass of a layer once, and once more where it is computed again. Gradients of
// weights are reduced among all replicas.
func TestTokensShared(t *testing.T) {
	_, j := models8(t, small[0])
	const batch, layers, tokens, kv = 8, 3, 64, 128
	for _, text := range []string{"ddp=8 cp", "ddp=4 cp=2 mb=2", "zero-1=8 cp=4", "zero-2=8 cp=2 mb=2", "zero-3=8 cp=4", "zero-3=8 cp recompute", "ddp=4 cp tp=2 vocab", "ddp=4 cp=2 tp=2 vocab sp", "ddp=2 cp 1f1b=2 mb=4", "zero-1=2 cp 1f1b=2 tp=2 vocab mb=4 recompute"} {
		at, err := strategy.Parse(text)
		if err != nil || at.String() != text {
			t.Fatalf("%s is read as %v: %v", text, at, err)
		}
		x := newModels(family(longer), batch)
		step, err := x.derive(j, at, false)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		all, err := x.graph(variant{batch, at.Recompute, 0})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := products(step.Graph), products(all); math.Abs(got/want-1) > 1e-12 {
			t.Errorf("%s: products do %g FLOPs, want %g", text, got, want)
		}
		var gathered, scattered units.Bytes
		for _, c := range step.Collectives {
			switch {
			case c.Axis != strategy.TokenAxis:
			case c.Ranks != at.Context:
				t.Errorf("%s: %v among %d", text, c.Kind, c.Ranks)
			case c.Kind == strategy.AllGather:
				gathered += c.Bytes
			case c.Kind == strategy.ReduceScatter:
				scattered += c.Bytes
			default:
				t.Errorf("%s: %v among those that share tokens out", text, c.Kind)
			}
		}
		pass := units.Bytes(batch * tokens * kv * 2 * 2) // keys and values of bf16, of a layer
		want := pass * 2 * layers
		if at.Recompute == strategy.RecomputeLayers {
			want += pass * (layers - 1) // the last is not computed again
		}
		if gathered != want || scattered != layers*pass {
			t.Errorf("%s: %v are gathered and %v scattered, want %v and %v", text, gathered, scattered, want, layers*pass)
		}
	}
}

// products adds up the FLOPs of the products of the passes of g.
func products(g *graph.Graph) (sum float64) {
	for i := range graph.OpID(g.NumOps()) {
		if o := g.Op(i); !o.GEMM.IsZero() && o.Phase != graph.Update {
			sum += float64(o.FLOPs)
		}
	}
	return sum
}

// TestTokensLikeSamples: ranks that share the tokens of as many samples as they are do as much as if each
// had a sample of its own, and hold as much but for what attention gathers: the step is longer by what is
// gathered and scattered, and by what attention reads more.
func TestTokensLikeSamples(t *testing.T) {
	x, j := models8(t, "llama:layers=4,hidden=1024,heads=8,kv_heads=4,ffn=2816,seq=1024,vocab=4096")
	run := func(text string) *Result {
		t.Helper()
		at, err := strategy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		step, err := x.derive(j, at, true)
		if err != nil {
			t.Fatal(err)
		}
		r, err := j.Run(step)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, how := range []string{"ddp=8", "zero-1=8", "zero-3=8", "zero-3=8 mb=2", "ddp=4 tp=2", "zero-3=8 recompute"} {
		apart := run(how)
		data, more, _ := strings.Cut(how, " ")
		shared := run(strings.TrimSpace(data + " cp " + more))
		exposed, gathered := 0.0, units.Bytes(0)
		for _, c := range shared.Step.Collectives {
			if c.Axis == strategy.TokenAxis {
				s, err := j.collectiveSeconds(shared.Step.Strategy.Mesh, c)
				if err != nil {
					t.Fatal(err)
				}
				exposed, gathered = exposed+s, max(gathered, c.Bytes)
			}
		}
		if d := shared.Seconds - apart.Seconds; d < 0 || d > 1.1*exposed+0.01*apart.Seconds {
			t.Errorf("%s: %g s where tokens are shared out, %g s of it keys and values; %g s where samples are", how, shared.Seconds, exposed, apart.Seconds)
		}
		// Keys and values of all tokens, and their gradients.
		if least, most := apart.Peak[0]*97/100, apart.Peak[0]+2*gathered; shared.Peak[0] < least || shared.Peak[0] > most {
			t.Errorf("%s: %v where tokens are shared out, %v where samples are, and %v is gathered", how, shared.Peak[0], apart.Peak[0], gathered)
		}
	}
}

// TestTokensFolded: one replica stands for all that share tokens out.
func TestTokensFolded(t *testing.T) {
	x, j := models8(t, longer)
	for _, text := range []string{"ddp=8 cp", "zero-3=8 cp=2", "zero-1=8 cp=4 mb=2", "ddp=4 cp=2 tp=2 vocab sp"} {
		at, err := strategy.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		var r [2]*Result
		for k, fold := range []bool{false, true} {
			step, err := x.derive(j, at, fold)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if r[k], err = j.Run(step); err != nil {
				t.Fatal(err)
			}
		}
		if d := r[1].Seconds/r[0].Seconds - 1; math.Abs(d) > 0.01 {
			t.Errorf("%s: %g s folded, %g s whole", text, r[1].Seconds, r[0].Seconds)
		}
		if d := float64(r[1].Traffic)/float64(r[0].Traffic) - 1; math.Abs(d) > 0.02 {
			t.Errorf("%s: sends %v folded, %v whole", text, r[1].Traffic, r[0].Traffic)
		}
	}
}

// TestTokensOfExperts: rows that replicas send to experts are those of their own tokens.
func TestTokensOfExperts(t *testing.T) {
	_, j := models8(t, small[0])
	for _, form := range []string{"", ",grouped=true"} {
		x := newModels(family(training+form), 32)
		for _, text := range []string{"ddp=8 cp", "ddp=8 ep cp", "zero-1=8 ep cp=2", "zero-3=8 ep=4 cp=4"} {
			at, err := strategy.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			step, err := x.derive(j, at, false)
			if err != nil {
				t.Fatalf("%s%s: %v", text, form, err)
			}
			all, err := x.graph(variant{32, at.Recompute, 0})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := products(step.Graph), products(all); math.Abs(got/want-1) > 1e-12 {
				t.Errorf("%s%s: products do %g FLOPs, want %g", text, form, got, want)
			}
			sent := units.Bytes(0)
			for _, c := range step.Collectives {
				if c.Kind == strategy.AllToAll {
					sent += c.Sent() * units.Bytes(c.Ranks)
				}
			}
			rows := units.Bytes(32 * 64 * 2 * 256 * 2 * 2 * 4) // of bf16, in two layers, there and back, twice
			if want := rows * units.Bytes(max(1, at.Experts)-1) / units.Bytes(max(1, at.Experts)); sent != want {
				t.Errorf("%s%s: %v of rows are sent, want %v", text, form, sent, want)
			}
		}
	}
}

// TestTokensNotShared: what replicas cannot share out is refused by name.
func TestTokensNotShared(t *testing.T) {
	for _, c := range []struct{ model, strategy, want string }{
		{"llama:layers=2,hidden=256,heads=8,kv_heads=4,ffn=512,seq=64,vocab=1000,attention=products", "ddp=8 cp", "no attention in one kernel"},
		{"llama:layers=2,hidden=256,heads=8,kv_heads=4,ffn=512,seq=60,vocab=1000", "ddp=8 cp", "8 replicas cannot share 60 tokens out evenly"},
		{"vit:layers=2,hidden=256,heads=8,ffn=512,size=64,classes=100", "ddp=4 cp=2", "cannot share"},
		{"gnmt:layers=3,source=4,target=4,hidden=64,vocab=500", "ddp=4 cp", "no attention in one kernel"},
		{"llama:layers=2,hidden=256,heads=8,kv_heads=4,ffn=512,seq=64,vocab=1000", "ddp=8 cp=2 mb=8", "cannot be divided"},
	} {
		x, j := models8(t, c.model)
		at, err := strategy.Parse(c.strategy)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.derive(j, at, false); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v, want %q", c.model, c.strategy, err, c.want)
		}
	}
	for _, text := range []string{"cp", "ddp=4 cp=3", "ddp=4 cp=1", "tp=2 cp"} {
		if s, err := strategy.Parse(text); err == nil {
			t.Errorf("%q is read as %v", text, s)
		}
	}
}

// TestContextRow: of one long sample the devices take the tokens among themselves, in a row of their own
// and as replicas of split products; of a model that cannot be shared out so there is no such row.
func TestContextRow(t *testing.T) {
	rows := func(model string) map[string]*Row {
		m, err := hw.Take("h100", 4, false)
		if err != nil {
			t.Fatal(err)
		}
		x, err := NewComparison(source(), family(model), m, Config{Batch: 1, Clock: func() float64 { return 0 }})
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]*Row{}
		for _, r := range x.Rows(context.Background(), nil) {
			all[r.Name] = &r
		}
		return all
	}
	long := rows("llama:layers=2,hidden=1024,heads=8,kv_heads=2,ffn=2048,seq=32768,vocab=4096")
	r := long[NameContext]
	if r == nil || r.Result == nil || r.Strategy.Context != 4 || long[NameData].Result != nil {
		t.Fatalf("context-parallel: %+v; data-parallel: %+v", r, long[NameData])
	}
	if one := long[NameSingle]; one.Seconds < 2*r.Seconds {
		t.Errorf("%v takes %g s, one device %g s", r.Strategy, r.Seconds, one.Seconds)
	}
	if h := long[NameHybrid]; h.Result == nil || h.Strategy.Context == 0 && h.Strategy.Data > 1 {
		t.Errorf("hybrid: %+v", h)
	}
	if r := rows("gnmt:layers=3,source=4,target=4,hidden=64,vocab=500")[NameContext]; r != nil {
		t.Errorf("gnmt: %+v", r)
	}
}
