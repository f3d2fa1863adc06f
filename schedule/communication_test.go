package schedule_test

import (
	"math"
	"slices"
	"testing"

	"placer/baselines/conformance"
	"placer/graph"
	"placer/graph/unit"
	"placer/schedule"
	"placer/units"
)

func bytesAndOne(b units.Bytes) float64 { return float64(b) + 1 }

// TestCommunication compares with sums over a dense matrix.
func TestCommunication(t *testing.T) {
	for _, c := range conformance.Cases() {
		p, err := c.Problem()
		if err != nil {
			t.Fatal(err)
		}
		g, part := p.Graph, p.Units.Levels[unit.Cell]
		n, of := part.NumUnits(), part.Of
		reads, transfers := make([]float64, n*n), make([]float64, n*n)
		add := func(m []float64, p, q graph.OpID, bytes units.Bytes) {
			if a, b := int(of[p]), int(of[q]); a != b {
				m[a*n+b] += bytesAndOne(bytes)
				m[b*n+a] += bytesAndOne(bytes)
			}
		}
		for i := range graph.OpID(g.NumOps()) {
			for _, k := range g.Inputs(i) {
				add(reads, g.Tensor(k).Producer, i, g.Tensor(k).Bytes)
			}
			for _, q := range g.Control(i) {
				add(reads, q, i, 0)
				add(transfers, q, i, 0)
			}
		}
		for k := range graph.TensorID(g.NumTensors()) {
			sent := map[int32]bool{}
			for _, v := range g.Consumers(k) {
				if !sent[of[v]] {
					sent[of[v]] = true
					add(transfers, g.Tensor(k).Producer, v, g.Tensor(k).Bytes)
				}
			}
		}
		for _, x := range []struct {
			name string
			got  *schedule.Communication
			want []float64
		}{
			{"reads", schedule.NewCommunication(n, bytesAndOne, schedule.Reads(g, of), schedule.Controls(g, of)), reads},
			{"transfers", schedule.NewCommunication(n, bytesAndOne, schedule.Transfers(g, of), schedule.Controls(g, of)), transfers},
		} {
			if x.got.NumUnits() != n {
				t.Fatalf("%s, %s: %d units, want %d", c.Name, x.name, x.got.NumUnits(), n)
			}
			got := make([]float64, n*n)
			for u := range int32(n) {
				to, weight := x.got.Neighbours(u)
				if !slices.IsSorted(to) {
					t.Errorf("%s, %s: neighbours %v of unit %d", c.Name, x.name, to, u)
				}
				for k, v := range to {
					got[int(u)*n+int(v)] += weight[k]
				}
			}
			for k := range x.want {
				if math.Abs(got[k]-x.want[k]) > 1e-9 {
					t.Fatalf("%s, %s: edge %d-%d weighs %g, want %g", c.Name, x.name, k/n, k%n, got[k], x.want[k])
				}
			}
		}
	}
}

// Unit 1 exchanges 5, 9, 9 with 0, 2, 3.
func TestHeaviest(t *testing.T) {
	c := schedule.NewCommunication(4, func(b units.Bytes) float64 { return float64(b) }, slices.Values([]schedule.Exchange{
		{From: 1, To: 3, Bytes: 9}, {From: 0, To: 1, Bytes: 5}, {From: 2, To: 1, Bytes: 4}, {From: 1, To: 2, Bytes: 5},
	}))
	h := c.Heaviest(2)
	if u, w := h.Neighbours(1); !slices.Equal(u, []int32{2, 3}) || !slices.Equal(w, []float64{9, 9}) {
		t.Errorf("neighbours %v with %v", u, w)
	}
	if u, _ := h.Neighbours(0); !slices.Equal(u, []int32{1}) {
		t.Errorf("neighbours %v of unit 0", u)
	}
}
