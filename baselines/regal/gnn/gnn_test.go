package gnn

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"placer/baselines/regal/brkga"
	"placer/baselines/regal/propose"
	"placer/baselines/regal/regaltest"
	"placer/baselines/regal/sched"
	"placer/nn"
)

func policy(t testing.TB, c Config) *Policy {
	t.Helper()
	p, err := New(c, regaltest.Backend(t), rand.New(rand.NewPCG(81, 0)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// bias is the synthetic agent with a learned elite bias.
func bias() Config {
	c := synthetic()
	c.Crossover = 4
	return c
}

// Proposals of each of the paper's agents follow from the random stream, on one
// goroutine or many, and leave 4,600 of 5,000 evaluations.
func TestPropose(t *testing.T) {
	for name, c := range map[string]Config{"memory": peakMemory(), "time": runTime(), "synthetic": synthetic(), "bias": bias()} {
		t.Run(name, func(t *testing.T) {
			if got := regaltest.Propose(t, policy(t, c)); (got.EliteBias > 0.5) != (c.Crossover > 0) {
				t.Errorf("elite bias %g", got.EliteBias)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"width": func(c *Config) { c.Width = 0 }, "levels": func(c *Config) { c.Actions.OrderLevels = 1 },
		"both": func(c *Config) { c.Residual = true }, "bias": func(c *Config) { c.Crossover = 1 },
	} {
		c := synthetic()
		if change(&c); c.validate() == nil {
			t.Errorf("%s passed", name)
		}
	}
}

// One edge for each tensor that an op reads, with its three features.
func TestRead(t *testing.T) {
	p, err := sched.New(sched.Spec{Time: []float64{1, 2, 3}, Machine: sched.TwoDevices(), Tensors: []sched.Tensor{
		{Producer: 0, Consumers: []int32{1, 2}, Size: 4}, {Producer: 0, Consumers: []int32{2}, Size: 8}, {Producer: 1, Consumers: []int32{2}, Control: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	g := readGraph(context.Background(), p, sched.RunTime, rand.New(rand.NewPCG(1, 1)))
	if fmt.Sprint(g.from, g.to) != "[0 0 0 1] [1 2 2 2]" || g.pin != 2 {
		t.Errorf("edges %v %v, pin %d", g.from, g.to, g.pin)
	}
	if want := []float32{0.5, 0, 0, 0.5, 0, 0, 1, 0, 1.0 / 3, 0, 1, 2.0 / 3}; !reflect.DeepEqual(g.edges, want) {
		t.Errorf("features %v, want %v", g.edges, want)
	}
}

func Example() {
	b, err := nn.NewBackend(nn.Config{Libraries: []string{}, Workers: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := New(synthetic(), b, rand.New(rand.NewPCG(1, 0)))
	if err != nil {
		fmt.Println(err)
		return
	}
	e := sched.NewEvaluator(regaltest.Small(3), sched.RunTime)
	got, err := propose.Search(context.Background(), e, p, brkga.Default(), 1000, rand.New(rand.NewPCG(1, 1)))
	fmt.Println(got.Evaluations, err)
	// Output: 1000 <nil>
}

// The policies that come with the program load, say how they came about, and are
// small.
func TestBuiltIn(t *testing.T) {
	all, err := BuiltIn(regaltest.Backend(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range all {
		if x.Steps < 1 || x.Imitated > x.Steps || x.Policy.Config().Actions.Devices != 2 {
			t.Errorf("%s: %d of %d steps", x.Name, x.Imitated, x.Steps)
		}
		if bytes := 4 * x.Policy.params.Count(); bytes > 300_000 {
			t.Errorf("%s: %d bytes", x.Name, bytes)
		}
	}
	if all[0].Imitated == 0 || !all[0].Likeliest() {
		t.Errorf("the first is %+v", all[0])
	}
}

// TestCompiledAreBounded: however many sizes of graphs come, the networks kept for them stay
// few.
func TestCompiledAreBounded(t *testing.T) {
	p := policy(t, Config{Width: 1, Rounds: 1, Actions: propose.Space{Devices: 1, PlaceLevels: 2, OrderLevels: 2}})
	f := len(propose.FeatureNames(1))
	for k := range mostCompiled + 2 {
		n := 32 * (k + 1)
		g := &multigraph{ops: &propose.Features{N: n, F: f, V: make([]float32, n*f)}, from: []int32{0}, to: []int32{1}, edges: make([]float32, EdgeFeatures)}
		if _, err := p.compile(g, false); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(p.graphs); n > mostCompiled {
		t.Errorf("%d compiled networks are kept, want %d at most", n, mostCompiled)
	}
}
