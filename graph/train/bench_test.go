package train_test

import (
	"fmt"
	"testing"

	"placer/graph"
	"placer/graph/train"
)

// BenchmarkDerive: go test -bench Derive ./graph/train
func BenchmarkDerive(b *testing.B) {
	for _, steps := range []int{400, 4000} {
		g := recurrent(b, steps)
		b.Run(fmt.Sprintf("ops=%d", g.NumOps()), func(b *testing.B) {
			var d *graph.Graph
			for b.Loop() {
				var err error
				if d, err = train.Derive(g, train.Default()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(d.NumOps()), "derived_ops")
		})
	}
}
