package device

import (
	"math/rand/v2"
	"testing"

	"placer/graphsage"
	"placer/hw/gpu/cuda/cudatest"
	"placer/nn/gonet"
)

func neighbours(start, index []int32) *graphsage.Neighbours {
	return &graphsage.Neighbours{Start: start, Index: index}
}

// realGPU returns a device on this host's first GPU.
func realGPU(t *testing.T) *Device {
	t.Helper()
	driver, blas := cudatest.Open(t)
	d, err := Open(driver, blas, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestRealGPUKernels compares every kernel with its reference on a GPU.
func TestRealGPUKernels(t *testing.T) { compareKernels(t, realGPU(t)) }

// TestRealGPUNetwork compares the whole network on a GPU with the CPU. cuBLAS adds
// in an order of its own, hence the wider tolerance.
func TestRealGPUNetwork(t *testing.T) { compareNetworks(t, realGPU(t), 1e-4) }

// TestRealGPUSizes is TestRealGPUNetwork at the sizes that searches use, which a
// fake takes minutes for: heads of 25 columns, segments of 256 rows, groups of
// them, sums of several rounds.
func TestRealGPUSizes(t *testing.T) {
	d := realGPU(t)
	r := rand.New(rand.NewPCG(5, 6))
	for _, p := range usual(r, 2500, 700) {
		t.Run(p.name, func(t *testing.T) { compareNetwork(t, d, r, p, 1e-4) })
	}
}

// usual returns problems of default networks: placement of nodes nodes, and three
// tasks, refined, of fewer.
func usual(r *rand.Rand, nodes, fewer int) []networkCase {
	place := networkCase{name: "placement", config: gonet.Default(16, 8), batch: randomBatch(r, nodes, 16), free: true, many: true}
	for range nodes * 8 {
		place.batch.Allowed = append(place.batch.Allowed, r.IntN(8) > 0)
	}
	for v := range nodes {
		place.batch.Allowed[8*v+r.IntN(8)] = true
	}
	tasks := networkCase{name: "tasks", config: gonet.Default(16, 4), batch: randomBatch(r, fewer, 16), many: true}
	tasks.config.Decision.ScheduleLevels, tasks.config.Decision.FusionLevels, tasks.config.Decision.FusionKinds = 3, 2, 2
	tasks.config.Iterations = 2
	tasks.batch.Copies = 4
	return []networkCase{place, tasks}
}
