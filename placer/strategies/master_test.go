package strategies

import (
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/strategy"
	"placer/units"
)

// heldBy is what a rank holds of the variables of one co-location group.
type heldBy struct {
	rank  int32
	group int32
}

// TestMasterWeights: of a model trained by Adam with master weights, a rank that holds a
// weight of 16 bits, or a share of it, holds master copy and slots of as many elements, three
// variables of 4 bytes for one of 2; where optimizer state alone is shared out, its share of
// them; and no rank holds any of a variable that it does not hold. With the gradient that is
// 4 + 12/D bytes a parameter under ZeRO 1 (Rajbhandari et al., SC 2020, section 5.1 and
// figure 1, whose K is 12).
func TestMasterWeights(t *testing.T) {
	for _, name := range []string{
		"llama:layers=4,hidden=256,heads=8,kv_heads=4,ffn=512,seq=64,vocab=1000,master_weights=true",
		"vit:layers=4,hidden=256,heads=8,ffn=512,size=64,classes=128,master_weights=true",
	} {
		judged := 0
		for _, s := range meshes8() {
			x, j := models8(t, name)
			step, err := x.derive(j, s, false)
			if err != nil && strings.Contains(err.Error(), "depend on the batch") {
				continue
			}
			if err != nil {
				t.Fatalf("%s, %v: %v", name, s, err)
			}
			judged++
			micro, err := x.graph(variant{x.batch / int64(s.Data*s.MicroBatches), strategy.RecomputeNothing, 0})
			if err != nil {
				t.Fatal(err)
			}
			weight, state, count := map[heldBy]units.Bytes{}, map[heldBy]units.Bytes{}, map[heldBy]int{}
			var weights, states units.Bytes
			for i := range graph.OpID(step.Graph.NumOps()) {
				o, at := step.Graph.Op(i), heldBy{step.Rank[i], step.Graph.Op(i).Group}
				switch {
				case o.Kind.Class() != graph.ClassVariable:
				case o.Params > 0:
					weight[at] += o.Resident
					weights += o.Resident
				case strings.HasSuffix(o.Name, "/master"), strings.HasSuffix(o.Name, "/Adam"), strings.HasSuffix(o.Name, "/Adam_1"):
					state[at] += o.Resident
					states += o.Resident
					count[at]++
				}
			}
			share := units.Bytes(1) // ranks that share a weight's state, and not the weight
			if s.Sharding == strategy.ShardOptimizer || s.Sharding == strategy.ShardGradients {
				share = units.Bytes(s.Data)
			}
			for at, b := range weight {
				if count[at] != 3 || state[at]*share != 6*b {
					t.Fatalf("%s, %v: rank %d holds %d bytes of the weights of group %d and %d of their state in %d variables", name, s, at.rank, b, at.group, state[at], count[at])
				}
			}
			if len(state) != len(weight) {
				t.Errorf("%s, %v: %d weights and the state of %d", name, s, len(weight), len(state))
			}
			if s.Tensor > 1 {
				continue // what is not split is there on all
			}
			copies := units.Bytes(s.Data)
			if s.Sharding == strategy.ShardAll {
				copies = 1
			}
			if want := units.Bytes(2*micro.Params()) * copies; weights != want || states*share != 6*want {
				t.Errorf("%s, %v: all ranks hold %d bytes of weights and %d of state, want %d and %d", name, s, weights, states, want, 6*want/share)
			}
		}
		if judged < 20 {
			t.Errorf("%s: %d strategies were judged", name, judged)
		}
	}
}
