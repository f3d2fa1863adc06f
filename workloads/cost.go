package workloads

import (
	"placer/graph"
	"placer/units"
)

func bytesOf(t graph.Tensor) units.Bytes { return units.Bytes(elements(t.Shape) * t.DType.Size()) }

func flopsOf(n int) units.FLOPs { return units.FLOPs(n) }
