package sched

import (
	"fmt"
	"math"

	"placer/graph"
	"placer/units"
)

// FromGraph returns the problem of scheduling g on m with op times seconds, [N].
// Times become microseconds, to the millionth; sizes are bytes, those of
// variables included; an op with control successors makes one control tensor.
func FromGraph(g *graph.Graph, seconds []units.Seconds, m Machine) (*Problem, error) {
	if len(seconds) != g.NumOps() {
		panic(fmt.Sprintf("sched: %d times for %d ops", len(seconds), g.NumOps()))
	}
	s := Spec{Name: g.Name(), Time: make([]float64, len(seconds)), Internal: make([]int64, len(seconds)), Machine: m}
	control := make([][]int32, g.NumOps())
	for i := range graph.OpID(g.NumOps()) {
		s.Time[i] = math.Round(float64(seconds[i])*1e12) / 1e6
		s.Internal[i] = int64(g.Op(i).Workspace)
		for _, u := range g.Control(i) {
			control[u] = append(control[u], int32(i))
		}
	}
	for i := range graph.OpID(g.NumOps()) {
		for t, end := g.Outputs(i); t < end; t++ {
			x := Tensor{Producer: int32(i), Size: int64(g.Tensor(t).Bytes)}
			for _, v := range g.Consumers(t) {
				x.Consumers = append(x.Consumers, int32(v))
			}
			s.Tensors = append(s.Tensors, x)
		}
		if control[i] != nil {
			s.Tensors = append(s.Tensors, Tensor{Producer: int32(i), Consumers: control[i], Control: true})
		}
	}
	return New(s)
}
