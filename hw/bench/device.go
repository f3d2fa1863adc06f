package bench

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"placer/hw/gpu"
	"placer/units"
)

// Run measures the devices of d, all if devices is nil, and the links between
// them. On an error, or when ctx ends, it returns what it has beside the error.
func Run(ctx context.Context, cfg Config, d gpu.Driver, b gpu.BLAS, devices []int) (*Result, error) {
	r := &Result{Format: Format, CUDA: d.Version(), Devices: []device{}, Links: []link{}}
	if err := cfg.validate(); err != nil {
		return r, fmt.Errorf("hardware benchmark: %w", err)
	}
	n, err := d.Count()
	if err != nil {
		return r, err
	}
	if devices == nil {
		for i := range n {
			devices = append(devices, i)
		}
	}
	for _, dev := range devices {
		if dev < 0 || dev >= n {
			return r, fmt.Errorf("GPU %d: there are %d", dev, n)
		}
	}
	if len(devices) == 0 {
		return r, gpu.ErrNoDevice
	}
	return r, gpu.Locked(func() error {
		for _, dev := range devices {
			x, err := one(ctx, &cfg, d, b, dev)
			r.BLAS = b.Version()
			if x != nil {
				r.Devices = append(r.Devices, *x)
			}
			if err != nil {
				return err
			}
		}
		return r.links(ctx, &cfg, d, b, devices)
	})
}

// one measures device dev. What fails is told at the end, behind what could be
// measured all the same.
func one(ctx context.Context, cfg *Config, d gpu.Driver, b gpu.BLAS, dev int) (*device, error) {
	l, err := open(ctx, cfg, d, b, dev)
	if err != nil {
		return nil, err
	}
	defer l.close()
	var failed []error
	for _, part := range []struct {
		what string
		f    func() error
	}{{"launches", l.launches}, {"copies", l.copies}, {"streams", l.streams}, {"host transfers", l.host}, {"products", l.products}} {
		if cfg.Progress != nil {
			cfg.Progress(fmt.Sprintf("GPU %d: %s", dev, part.what))
		}
		if err := part.f(); err != nil {
			failed = append(failed, fmt.Errorf("GPU %d: %s: %w", dev, part.what, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return l.out, errors.Join(failed...)
}

// launches measures what a kernel that does nothing costs.
func (l *lab) launches() (err error) {
	nop := func(int) error { return l.k.Nop(l.d, l.stream) }
	if l.out.Launch, err = l.repeat("launches", 10_000, nop); err != nil {
		return err
	}
	if l.out.Round, err = l.repeat("", 200, func(int) error {
		if err := l.k.Nop(l.d, l.stream); err != nil {
			return err
		}
		return l.d.SyncStream(l.stream)
	}); err != nil {
		return err
	}
	l.out.Node, err = l.captured("", 500, nop)
	return err
}

// messages calls f, which times a size, for every size that fits into room.
func (l *lab) messages(room uint64, f func(bytes units.Bytes) (stat, error)) (points []point, line Line, err error) {
	for _, b := range l.cfg.Messages {
		if uint64(b) > room {
			break
		}
		s, err := f(b)
		if err != nil {
			return points, line, fmt.Errorf("%v: %w", b, err)
		}
		points = append(points, point{b, s})
	}
	if len(points) < 2 {
		return points, line, fmt.Errorf("%d sizes of messages fit into %v", len(points), units.Bytes(room))
	}
	return points, fitLine(points), nil
}

// copies measures copies within the device.
func (l *lab) copies() (err error) {
	half := l.size / 2 / 512 * 512
	copy := func(bytes units.Bytes) (stat, error) {
		n := uint64(bytes)
		return l.repeat("", 200, func(i int) error {
			at := gpu.Ptr(uint64(i) % max(1, half/max(n, 512)) * max(n, 512) / 512 * 512)
			return l.d.DtoD(l.buffer+gpu.Ptr(half)+at, l.buffer+at, n, l.stream)
		})
	}
	if l.out.CopyPoints, l.out.Copies, err = l.messages(half, copy); err != nil {
		return err
	}
	s, err := l.repeat("copies", 50, func(int) error { return l.d.DtoD(l.buffer+gpu.Ptr(half), l.buffer, half, l.stream) })
	l.out.Copy = units.BytesPerSecond(2 * float64(half) / float64(s.Median))
	return err
}

// streams measures kernels that read and write as much, as elementwise ops do,
// with arithmetic for some sizes, and kernels that read alone, as reductions nearly
// do. Many ops of a step are of a few bytes.
func (l *lab) streams() error {
	const small = 32 << 10
	for n := uint64(512); n <= l.size; n *= 2 {
		if n < small {
			n *= 2 // fewer of the sizes that take the same
		}
		for _, x := range []struct {
			to    *[]point
			write uint64
			fma   uint64
			what  string
		}{{&l.out.Streams, n / 2, 0, "streams"}, {&l.out.Reads, 0, 0, "reads"}, {&l.out.Worked, n / 2, 2, ""}} {
			if x.fma > 0 && (n < 1<<20 || bits.TrailingZeros64(n)%2 != 0) {
				continue
			}
			sample := ""
			if 2*n > l.size && x.what != "" {
				sample = x.what
			}
			s, err := l.captured(sample, 32, func(i int) error {
				p := l.rotate(i, n)
				return l.k.Stream(l.d, l.stream, p, n-x.write, p+gpu.Ptr(n-x.write), x.write, x.fma)
			})
			if err != nil {
				return err
			}
			*x.to = append(*x.to, point{units.Bytes(n), l.alone(s)})
		}
	}
	return nil
}

// alone takes the cost of a graph's node off the time of a kernel in it. What is
// left stays above zero.
func (l *lab) alone(s stat) stat {
	node := min(l.out.Node.Median, 0.95*s.Min)
	return stat{s.Median - node, s.Min - node, s.Max - node, s.N}
}

// host measures transfers from and to pinned memory.
func (l *lab) host() error {
	largest := l.cfg.Messages[len(l.cfg.Messages)-1]
	pinned, err := l.d.HostAlloc(int(largest))
	if err != nil {
		return err
	}
	defer l.d.HostFree(pinned)
	if l.out.ToDevice, l.out.HostToGPU, err = l.messages(l.size, func(b units.Bytes) (stat, error) {
		return l.repeat("", 100, func(int) error { return l.d.HtoD(l.buffer, pinned[:b], l.stream) })
	}); err != nil {
		return err
	}
	l.out.FromDevice, l.out.GPUToHost, err = l.messages(l.size, func(b units.Bytes) (stat, error) {
		return l.repeat("", 100, func(int) error { return l.d.DtoH(pinned[:b], l.buffer, l.stream) })
	})
	return err
}

// products measures the grid of shapes for every type that library and device
// have. A type of which no shape runs, for another reason than that, is an error.
func (l *lab) products() error {
	var failed []error
	for _, t := range l.cfg.Types {
		var refused gpu.Status // the latest
		measured := 0
		for _, s := range l.cfg.Shapes {
			p := gpu.Product{Type: t, Batch: s.Batch, M: s.M, N: s.N, K: s.K}
			a, b, c := p.Bytes()
			a, b = (a+511)/512*512, (b+511)/512*512
			if a+b+c > l.size {
				continue
			}
			// Fresh data for each shape: results of another one are large, and their
			// products no numbers at all.
			if err := l.k.Fill(l.d, l.stream, l.buffer, l.size, t, 2); err != nil {
				return err
			}
			run := func(i int) error {
				at := l.rotate(i, a+b+c)
				p.A, p.B, p.C = at, at+gpu.Ptr(a), at+gpu.Ptr(a+b)
				return l.b.Multiply(l.h, &p)
			}
			sample := ""
			if s.M >= 4096 && s.N >= 4096 && s.K >= 4096 {
				sample = fmt.Sprintf("%v products %dx%dx%d", t, s.M, s.N, s.K)
			}
			stat, err := l.captured(sample, 16, run)
			if errors.As(err, &refused) {
				if err := l.clear(); err != nil {
					return err
				}
				continue // not this type, or not this shape
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("%v %v: %w", t, s, err))
				if l.ctx.Err() != nil || l.clear() != nil {
					return errors.Join(failed...) // nor would another
				}
				break // the next type
			}
			measured++
			stat = l.alone(stat)
			flops := 2 * float64(s.Batch) * float64(s.M) * float64(s.N) * float64(s.K)
			l.out.Products = append(l.out.Products, Product{t.String(), s.Batch, s.M, s.N, s.K, flops / float64(stat.Median), stat})
		}
		if measured == 0 && refused != 0 && !refused.Lacks() {
			return fmt.Errorf("%v: %w", t, refused)
		}
	}
	return errors.Join(failed...)
}

// clear waits for what a refused call may have left on the stream.
func (l *lab) clear() error { return l.d.SyncStream(l.stream) }
