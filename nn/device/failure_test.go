package device

import (
	"errors"
	"math/rand/v2"
	"testing"

	"placer/hw/gpu"
	"placer/hw/gpu/fake"
	"placer/nn/gonet"
)

// failing is a GPU whose calls fail once: the one that left counts down to.
type failing struct {
	*fake.GPU
	gpu.BLAS
	left int
}

func (f *failing) Version() int { return f.GPU.Version() }

func (f *failing) fail() error {
	if f.left--; f.left == 0 {
		return gpu.OutOfMemory
	}
	return nil
}

func (f *failing) Alloc(n uint64) (gpu.Ptr, error) {
	if err := f.fail(); err != nil {
		return 0, err
	}
	return f.GPU.Alloc(n)
}

func (f *failing) HostAlloc(n int) ([]byte, error) {
	if err := f.fail(); err != nil {
		return nil, err
	}
	return f.GPU.HostAlloc(n)
}

func (f *failing) HtoD(dst gpu.Ptr, src []byte, s gpu.Stream) error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.GPU.HtoD(dst, src, s)
}

func (f *failing) DtoH(dst []byte, src gpu.Ptr, s gpu.Stream) error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.GPU.DtoH(dst, src, s)
}

func (f *failing) Launch(k gpu.Func, grid, block uint32, s gpu.Stream, args []uint64) error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.GPU.Launch(k, grid, block, s, args)
}

func (f *failing) SyncStream(s gpu.Stream) error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.GPU.SyncStream(s)
}

func (f *failing) Multiply(h gpu.Handle, p *gpu.Product) error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.BLAS.Multiply(h, p)
}

// TestOpenFails: a device that cannot be opened keeps nothing.
func TestOpenFails(t *testing.T) {
	g := fake.New(fake.Default())
	if _, err := Open(nameless{g}, g.BLAS(), 0); !errors.Is(err, gpu.NotFound) {
		t.Errorf("without kernels: %v", err)
	}
	if err := g.SetCurrent(1); !errors.Is(err, gpu.InvalidContext) {
		t.Errorf("the context is still there: %v", err)
	}
}

// nameless is a GPU that finds no kernel.
type nameless struct{ *fake.GPU }

func (nameless) Func(gpu.Module, string) (gpu.Func, error) { return 0, gpu.NotFound }

// TestFailures: whichever call fails, the run reports it, the next one is right,
// and the device has all its memory back after Close.
func TestFailures(t *testing.T) {
	c := fake.Default()
	c.Kernels = references()
	g := fake.New(c)
	f := &failing{GPU: g, BLAS: g.BLAS()}
	d, err := Open(f, f, 0)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	all := cases(r)
	for _, p := range []networkCase{all[1], all[3]} { // a mask of each node, embeddings
		cpu, _ := networks(t, p, d)
		free := func(n *gonet.Network) *gonet.Batch {
			b := *p.batch
			if p.free {
				b.InstanceLogits = n.AddInstanceLogits("here", b.X.N)
			}
			return &b
		}
		want, err := cpu.Forward(free(cpu))
		if err != nil {
			t.Fatal(err)
		}
		o := objective(r, p, want, false)
		for call, done := 1, false; !done; call += 1 + call/16 {
			_, n := networks(t, p, d)
			b := free(n)
			f.left = call
			_, err := n.Forward(b)
			if err == nil {
				_, err = n.Backward(b, o)
			}
			if done = f.left > 0; done != (err == nil) || !done && !errors.Is(err, gpu.OutOfMemory) {
				t.Fatalf("%s: call %d failed: %v", p.name, call, err)
			}
			f.left = 0
			got, err := n.Forward(b)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want.Tasks {
				close32(t, "logits", got.Tasks[i].V, want.Tasks[i].V, 2e-5)
			}
			if err := n.Close(); err != nil {
				t.Fatal(err)
			}
			if left := len(g.Spans()) / 2; left > len(d.rooms) {
				t.Fatalf("%s: %d pieces of memory after call %d failed, besides the device's own", p.name, left-len(d.rooms), call)
			}
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if left := g.Spans(); len(left) > 0 {
		t.Errorf("%d pieces of memory after Close", len(left)/2)
	}
}
