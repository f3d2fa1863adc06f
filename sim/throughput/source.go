package throughput

import (
	"placer/graph"
	"placer/graph/formats/times"
	"placer/hw"
)

// FromTable returns the source of g on m with the times of t.
func FromTable(g *graph.Graph, m *hw.Machine, t *times.Table) (Source, error) {
	s := Source{Graph: g, Machine: m, Transfer: t.Transfer}
	var err error
	s.Seconds, err = t.Columns(m)
	return s, err
}
