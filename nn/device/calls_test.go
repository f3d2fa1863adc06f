package device

import (
	"math/rand/v2"
	"testing"

	"placer/hw/gpu"
	"placer/hw/gpu/fake"
	"placer/nn"
	"placer/nn/gonet"
	"placer/ppo"
)

// counting is a GPU that counts what a step asks of it. Kernels and products do
// nothing.
type counting struct {
	*fake.GPU
	gpu.BLAS
	calls
}

// calls are counts; up and down are bytes.
type calls struct{ launches, products, waits, allocations, up, down int }

func (c *counting) Version() int { return c.GPU.Version() }

func (c *counting) Launch(gpu.Func, uint32, uint32, gpu.Stream, []uint64) error {
	c.launches++
	return nil
}

func (c *counting) Multiply(gpu.Handle, *gpu.Product) error {
	c.products++
	return nil
}

func (c *counting) SyncStream(s gpu.Stream) error {
	c.waits++
	return c.GPU.SyncStream(s)
}

func (c *counting) Alloc(n uint64) (gpu.Ptr, error) {
	c.allocations++
	return c.GPU.Alloc(n)
}

func (c *counting) HtoD(dst gpu.Ptr, src []byte, s gpu.Stream) error {
	c.up += len(src)
	return c.GPU.HtoD(dst, src, s)
}

func (c *counting) DtoH(dst []byte, src gpu.Ptr, s gpu.Stream) error {
	c.down += len(dst)
	return c.GPU.DtoH(dst, src, s)
}

// TestCalls: what a step asks of the device does not grow with the graph but for
// the samples' bytes, and it waits no oftener than it must.
func TestCalls(t *testing.T) {
	g := fake.New(fake.Default())
	c := &counting{GPU: g, BLAS: g.BLAS()}
	d, err := Open(c, c, 0)
	if err != nil {
		t.Fatal(err)
	}
	backend, err := nn.NewBackend(nn.Config{Workers: 1, Device: d})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	n, err := gonet.New(gonet.Default(16, 8), r, backend)
	if err != nil {
		t.Fatal(err)
	}
	const samples = 16
	for _, nodes := range []int{2_000, 24_000} {
		b := randomBatch(r, nodes, 16)
		o := &ppo.Objective{ClipEps: 0.2, Entropy: 0.05, ValueCost: 0.5}
		for range samples {
			o.Actions, o.LogProb = append(o.Actions, make([]int32, nodes)), append(o.LogProb, make([]float32, nodes))
			o.Advantage, o.Return = append(o.Advantage, []float32{1}), append(o.Return, 0)
		}
		for range 3 { // the third needs no more memory
			c.calls = calls{}
			if _, err := n.Backward(b, o); err != nil {
				t.Fatal(err)
			}
			if _, err := n.Update(1e-3); err != nil {
				t.Fatal(err)
			}
		}
		want := calls{launches: 450, products: 340, waits: 5,
			up:   4*samples*(2*nodes+1) + 4, // choices, their chances, an advantage; the value's gradient
			down: 8*5 + 4 + 8}               // the objective's sums, the value, the gradient's norm
		if got := c.calls; got.launches > want.launches || got.products > want.products || got.waits > want.waits || got.allocations > 0 || got.up != want.up || got.down != want.down {
			t.Errorf("%d nodes: a step is %+v, want %+v at most", nodes, got, want)
		}
	}
}
