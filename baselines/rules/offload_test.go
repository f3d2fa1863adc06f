package rules_test

import (
	"context"
	"testing"

	"placer/baselines/rules"
	"placer/graph"
	"placer/hw"
	"placer/placer/problem"
	"placer/plan"
	"placer/units"
	"placer/workloads"
)

// workstation is a machine of a large and a small GPU, each on a link of its own to
// the host.
func workstation(t *testing.T) *hw.Machine {
	t.Helper()
	m, err := hw.ReadFile("../../experiments/memory/workstation.json")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const decoder65B = "llama:optimizer=none,layers=80,hidden=8192,heads=64,kv_heads=64,ffn=22016,dtype=f16"

func decoder(t *testing.T, name string, m *hw.Machine) *problem.Problem {
	t.Helper()
	g, err := workloads.Build(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := problem.New(problem.Source{Graph: g}, m, problem.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestOffload65B: 130 GB of weights on GPUs of 24 and 12 GB. By hand, with every weight
// sent to the first GPU, the step is what the link takes for them, 4.67 s; the rule
// keeps what fits and takes less.
func TestOffload65B(t *testing.T) {
	p := decoder(t, decoder65B, workstation(t))
	byHand := make([]uint8, p.Graph.NumOps())
	var weights units.Bytes
	for i := range byHand {
		if o := p.Graph.Op(graph.OpID(i)); o.Kind == "VariableV2" {
			byHand[i] = 2
			weights += o.Resident
		}
	}
	hand := p.Evaluate(byHand)
	link := float64(weights) / 28e9
	if !hand.Feasible() || hand.Value < link || hand.Value > 1.01*link {
		t.Fatalf("by hand %v, the link takes %.2f s for the weights", hand, link)
	}
	o, err := rules.Offload().Place(context.Background(), &p.Problem)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("by hand %.3f s, offload %.3f s in %d evaluations", hand.Value, o.Score.Value, o.Evaluations)
	if !o.Score.Feasible() || o.Score.Value > 4.7 || o.Score.Value > 0.9*hand.Value {
		t.Errorf("offload comes to %v, by hand it is %v", o.Score, hand)
	}
}

// TestOffloadKeepsWhatFits: where one GPU holds everything nothing goes to the host.
func TestOffloadKeepsWhatFits(t *testing.T) {
	p := decoder(t, "llama:optimizer=none,layers=2,hidden=1024,heads=8,kv_heads=8,ffn=2048,dtype=f16", workstation(t))
	o, err := rules.Offload().Place(context.Background(), &p.Problem)
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range o.Device {
		if d == 2 {
			t.Fatalf("op %d is on the host", i)
		}
	}
	single, err := rules.Single().Place(context.Background(), &p.Problem)
	if err != nil || single.Score.Better(o.Score) {
		t.Errorf("offload %v, one GPU %v, error %v", o.Score, single.Score, err)
	}
}

// TestOffloadTrains: the updates of a weight on the host run there, and the groups of a
// training graph stay whole.
func TestOffloadTrains(t *testing.T) {
	m := workstation(t)
	m.Devices[0].Memory, m.Devices[1].Memory = 6e9, 1e9
	p := decoder(t, "llama:layers=12,hidden=2048,heads=16,kv_heads=16,ffn=5504,seq=512,dtype=f16,optimizer=adam", m)
	o, err := rules.Offload().Place(context.Background(), &p.Problem)
	if err != nil {
		t.Fatal(err)
	}
	d := plan.Plan{Decision: o.Decision}
	if err := d.Check(p.Graph, m); err != nil {
		t.Fatal(err)
	}
	updates := 0
	for i, on := range o.Device {
		if f, _ := graph.FactsOf(p.Graph.Op(graph.OpID(i)).Kind); f.Class == graph.ClassUpdate && on == 2 {
			updates++
		} else if f.Class == graph.ClassGEMM && on == 2 {
			t.Fatalf("product %d is on the host", i)
		}
	}
	single := p.Evaluate(make([]uint8, p.Graph.NumOps()))
	if single.Feasible() || !o.Score.Feasible() || updates == 0 {
		t.Errorf("one GPU %v, offload %v with %d updates on the host", single, o.Score, updates)
	}
}
