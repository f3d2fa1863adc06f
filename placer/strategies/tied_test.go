package strategies

import (
	"slices"
	"strings"
	"testing"

	"placer/graph"
	"placer/graph/strategy"
	"placer/units"
)

// Of the captured GPT-2: a table of 48 tokens by 32 columns that is the output layer too, 27,264
// parameters in all, f32, with Adam's two moments; samples of 8 tokens.
const (
	tokens, columns = 48, 32
	parameters      = 27264
	samples         = 16
)

// TestTied: each stage that reads a tied weight holds it with its gradient and its moments, all-reduces
// its gradient among these once a step, whatever the micro-batches, and updates it (Megatron-LM,
// megatron/core/distributed/finalize_model_grads.py, _allreduce_embedding_grads; placer_torch,
// parallel/pipeline_tied.py). Nothing else but activations is sent. Replicas that share gradients out
// reduce their shares, parts of a split vocabulary their rows.
func TestTied(t *testing.T) {
	const table = 4 * tokens * columns
	for _, c := range []struct {
		text    string
		reduced units.Bytes // of the table's gradient, on a rank
		held    units.Bytes // by all ranks of replica 0, part 0, throughout
	}{
		{"1f1b=2 mb=4", table, 16*parameters + 16*tokens*columns},
		{"gpipe=2 mb=2", table, 16*parameters + 16*tokens*columns},
		{"gpipe=2", table, 12*parameters + 12*tokens*columns}, // without buffers
		{"ddp=2 1f1b=2 mb=4", table, 16*parameters + 16*tokens*columns},
		{"zero-1=2 1f1b=2 mb=4", table / 2, (4+4)*parameters + 8*parameters/2 + (8+8/2)*tokens*columns},
		{"1f1b=2 tp=2 vocab mb=2", table / 2, 0},
	} {
		x, j := models8(t, small[0])
		x.family = captured(t)
		s, err := strategy.Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		for _, fold := range []bool{false, true} {
			step, err := x.derive(j, s, fold)
			if err != nil {
				t.Fatal(err)
			}
			tied := map[units.Bytes]int{}
			for _, k := range step.Collectives {
				if k.Axis == strategy.StageAxis {
					if k.Kind != strategy.AllReduce || k.Ranks != 2 || k.Stages != 3 {
						t.Errorf("%s: %+v", c.text, k)
					}
					tied[k.Bytes]++
				}
			}
			groups := s.Data * s.Tensor
			if fold {
				groups = 1
			}
			if len(tied) != 1 || tied[c.reduced] != groups {
				t.Errorf("%s: tied gradients are reduced: %v, want %v by %d groups", c.text, tied, c.reduced, groups)
			}
			g := step.Graph
			held, updates := units.Bytes(0), map[int32]int{}
			for i := range graph.OpID(g.NumOps()) {
				o := g.Op(i)
				if step.Rank[i] == 0 || step.Rank[i] == int32(s.Rank(0, 1, 0)) {
					held += o.Resident
				}
				if o.Kind == "ApplyAdam" && strings.HasSuffix(o.Name, "update.wte.weight") {
					updates[step.Rank[i]]++
				}
			}
			if c.held > 0 && held != c.held {
				t.Errorf("%s: the stages hold %d, want %d", c.text, held, c.held)
			}
			if len(updates) != 2*groups || updates[0] != 1 {
				t.Errorf("%s: the table is updated on %v, want once on each of two stages", c.text, updates)
			}
			// Activations go forth, their gradients back.
			if got, want := between(step, 0, s.Rank(0, 1, 0)), units.Bytes(4*samples/s.Data*8*columns); got != want {
				t.Errorf("%s: %v are sent to the next stage, want %v", c.text, got, want)
			}
			if got, want := between(step, s.Rank(0, 1, 0), 0), units.Bytes(4*samples/s.Data*8*columns); got != want {
				t.Errorf("%s: %v are sent back, want %v", c.text, got, want)
			}
		}
	}
}

// between are the bytes that rank a hands to rank b but in collectives.
func between(x *strategy.Step, a, b int) (sum units.Bytes) {
	g := x.Graph
	for t := range graph.TensorID(g.NumTensors()) {
		if p := g.Tensor(t).Producer; int(x.Rank[p]) == a && !x.Stream[p] && slices.ContainsFunc(g.Consumers(t), func(v graph.OpID) bool { return int(x.Rank[v]) == b && !x.Stream[v] }) {
			sum += g.Tensor(t).Bytes
		}
	}
	return sum
}

// TestTiedWaits: a stage's update of a tied weight is behind the gradients of all its stages.
func TestTiedWaits(t *testing.T) {
	for _, fold := range []bool{false, true} {
		x, j := models8(t, small[0])
		x.family = captured(t)
		s, err := strategy.Parse("1f1b=2 mb=4")
		if err != nil {
			t.Fatal(err)
		}
		step, err := x.derive(j, s, fold)
		if err != nil {
			t.Fatal(err)
		}
		g := step.Graph
		for i := range graph.OpID(g.NumOps()) {
			if g.Op(i).Kind != "ApplyAdam" || !strings.HasSuffix(g.Op(i).Name, "wte.weight") {
				continue
			}
			behind := before(g, i)
			adds := map[int32]int{}
			for p := range behind {
				if o := g.Op(p); o.Kind == "AssignAdd" && o.Module == "wte" || o.Kind == "AssignAdd" && o.Module == "lm_head" {
					adds[step.Rank[p]]++
				}
			}
			if adds[0] != 4 || adds[1] != 4 {
				t.Errorf("%s waits for %v sums of micro-batches, want 4 of each stage", g.Op(i).Name, adds)
			}
		}
	}
}

// TestTiedPlacement: a placement of single ops has one variable of a tied weight, as the graph has.
func TestTiedPlacement(t *testing.T) {
	x, j := models8(t, small[0])
	x.family = captured(t)
	s, err := strategy.Parse("1f1b=2 mb=4")
	if err != nil {
		t.Fatal(err)
	}
	s.Schedule = strategy.Free
	step, err := x.derive(j, s, false)
	if err != nil {
		t.Fatal(err)
	}
	tables := 0
	for i := range graph.OpID(step.Graph.NumOps()) {
		if strings.HasSuffix(step.Graph.Op(i).Name, "wte.weight") && step.Graph.Op(i).Params > 0 {
			tables++
		}
	}
	if tables != 1 || len(step.Collectives) > 0 {
		t.Errorf("%d tables, %d collectives, want one and none", tables, len(step.Collectives))
	}
}

// TestTiedRoom: stages are cut with what the last holds of a tied weight: of four equal layers under an
// output layer that is the table, a last stage with room for two layers and no table has to do with the
// cut that leaves it fewer.
func TestTiedRoom(t *testing.T) {
	b := graph.NewBuilder("tied")
	word := graph.Tensor{DType: graph.F32, Bytes: 4}
	holder := func(name string, layer int32, bytes units.Bytes) graph.TensorID {
		return b.Output(b.Op(graph.Op{Name: name, Kind: "VariableV2", Layer: layer, Params: int64(bytes) / 4, Resident: bytes, Forward: graph.None}, nil, graph.Tensor{DType: graph.F32, Bytes: bytes, Resident: true}), 0)
	}
	table := holder("table", 1, 1<<20)
	x := b.Output(b.Op(graph.Op{Name: "x", Kind: "Placeholder", Layer: 1, Forward: graph.None}, nil, word), 0)
	x = b.Output(b.Op(graph.Op{Name: "embed", Kind: "MatMul", Layer: 1, FLOPs: 8, Forward: graph.None}, []graph.TensorID{x, table}, word), 0)
	for layer := int32(2); layer < 6; layer++ {
		w := holder("w"+string('0'+layer), layer, 1<<20)
		x = b.Output(b.Op(graph.Op{Name: "f" + string('0'+layer), Kind: "MatMul", Layer: layer, FLOPs: 8, Forward: graph.None}, []graph.TensorID{x, w}, word), 0)
	}
	b.Op(graph.Op{Name: "head", Kind: "MatMul", Layer: 6, FLOPs: 8, Forward: graph.None}, []graph.TensorID{x, table}, word)
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	m, err := strategy.NewModel(g, g, nil)
	if err != nil {
		t.Fatal(err)
	}
	seconds := make([]float64, g.NumOps())
	for i := range seconds {
		seconds[i] = 1
	}
	blocks := strategy.NewBlocks(m, seconds)
	machine := star(t, 2, 1e30, 1e-12)
	for _, c := range []struct {
		room units.Bytes
		want int
	}{{4 << 20, 2}, {3<<20 - 1, 4}} {
		machine.Devices[0].Memory, machine.Devices[1].Memory = 8<<20, c.room
		bounds, err := cut(machine, blocks, [][]float64{seconds, seconds}, piped(strategy.OneFOneB, 2, 1, 1))
		if err != nil || !slices.Equal(bounds, []int{0, c.want}) {
			t.Errorf("room for %v: stages begin at %v, want 0 and %d: %v", c.room, bounds, c.want, err)
		}
	}
}

// before returns the ops that op i waits for, and those that these wait for.
func before(g *graph.Graph, i graph.OpID) map[graph.OpID]bool {
	all := map[graph.OpID]bool{}
	var visit func(graph.OpID)
	visit = func(i graph.OpID) {
		for p := range g.Predecessors(i) {
			if !all[p] {
				all[p] = true
				visit(p)
			}
		}
	}
	visit(i)
	return all
}
