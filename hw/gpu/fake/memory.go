package fake

import (
	"fmt"
	"maps"
	"slices"

	"placer/hw/gpu"
)

// block is device memory. Pages that nothing was written to read as zeros.
type block struct {
	base  gpu.Ptr
	size  uint64
	asked uint64 // of Alloc
	dev   int
	pages map[uint64][]byte
	whole []byte // all of it, with Config.Kernels
}

const pageSize = 4096

// moved bounds the data that is really moved or computed; of larger operands only
// the time is.
const moved = 64 << 10

func (g *GPU) Alloc(n uint64) (gpu.Ptr, error) {
	d, err := g.dev()
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, gpu.InvalidValue
	}
	size := (n + 511) / 512 * 512
	if size < n || size > g.cfg.Memory-g.used[d] {
		return 0, gpu.OutOfMemory
	}
	g.used[d] += size
	b := &block{base: gpu.Ptr(g.next+511) / 512 * 512, size: size, asked: n, dev: d, pages: map[uint64][]byte{}}
	if g.cfg.Kernels != nil {
		b.dense()
	} else {
		g.next = uint64(b.base) + size + 512
	}
	g.blocks[b.base] = b
	return b.base, nil
}

func (g *GPU) Free(p gpu.Ptr) error {
	if _, err := g.dev(); err != nil {
		return err
	}
	return g.drop(p)
}

func (g *GPU) drop(p gpu.Ptr) error {
	b, ok := g.blocks[p]
	if !ok {
		return gpu.InvalidValue
	}
	g.used[b.dev] -= b.size
	delete(g.blocks, p)
	return nil
}

// Spans returns the first address and the bytes of every allocation, ascending by
// address, as pairs.
func (g *GPU) Spans() (all []uint64) {
	for _, p := range slices.Sorted(maps.Keys(g.blocks)) {
		all = append(all, uint64(p), g.blocks[p].asked)
	}
	return all
}

// at returns the block that holds n bytes from p on.
func (g *GPU) at(p gpu.Ptr, n, align uint64) (*block, error) {
	if uint64(p)%align != 0 {
		return nil, fmt.Errorf("fake: address %x is not aligned to %d: %w", uint64(p), align, gpu.Code(716))
	}
	for _, b := range g.blocks {
		if p >= b.base && uint64(p-b.base)+n <= b.size {
			return b, nil
		}
	}
	return nil, fmt.Errorf("fake: %d bytes at %x are not allocated: %w", n, uint64(p), gpu.Code(700))
}

// reach is at for work on stream s, which touches the memory of its own device and
// of those to which there is a direct way.
func (g *GPU) reach(s gpu.Stream, p gpu.Ptr, n, align uint64) (*block, error) {
	x, err := g.stream(s)
	if err != nil {
		return nil, err
	}
	b, err := g.at(p, n, align)
	if err == nil && b.dev != x.dev && !g.peers[[2]int{x.dev, b.dev}] {
		return nil, fmt.Errorf("fake: work on device %d touches memory of device %d: %w", x.dev, b.dev, gpu.Code(700))
	}
	return b, err
}

func (b *block) read(p gpu.Ptr, n uint64) []byte {
	out := make([]byte, n)
	if b.whole != nil {
		copy(out, b.whole[p-b.base:])
		return out
	}
	for i := uint64(0); i < n; {
		at := uint64(p-b.base) + i
		k := min(n-i, pageSize-at%pageSize)
		if page := b.pages[at/pageSize]; page != nil {
			copy(out[i:i+k], page[at%pageSize:])
		}
		i += k
	}
	return out
}

func (b *block) write(p gpu.Ptr, data []byte) {
	if b.whole != nil {
		copy(b.whole[p-b.base:], data)
		return
	}
	for len(data) > 0 {
		at := uint64(p - b.base)
		page := b.pages[at/pageSize]
		if page == nil {
			page = make([]byte, pageSize)
			b.pages[at/pageSize] = page
		}
		k := copy(page[at%pageSize:], data)
		data, p = data[k:], p+gpu.Ptr(k)
	}
}

func (g *GPU) HtoD(dst gpu.Ptr, src []byte, s gpu.Stream) error {
	b, err := g.at(dst, uint64(len(src)), 1)
	if err == nil {
		err = g.pinned(src)
	}
	if err != nil {
		return err
	}
	return g.enqueue(s, g.cfg.Copy+ns(len(src), g.cfg.HostBandwidth), func() {
		if len(src) <= moved || b.whole != nil {
			b.write(dst, src)
		}
	})
}

func (g *GPU) DtoH(dst []byte, src gpu.Ptr, s gpu.Stream) error {
	b, err := g.at(src, uint64(len(dst)), 1)
	if err == nil {
		err = g.pinned(dst)
	}
	if err != nil {
		return err
	}
	return g.enqueue(s, g.cfg.Copy+ns(len(dst), g.cfg.HostBandwidth), func() {
		if len(dst) <= moved || b.whole != nil {
			copy(dst, b.read(src, uint64(len(dst))))
		}
	})
}

// transfer moves n bytes between blocks in t nanoseconds.
func (g *GPU) transfer(dst, src gpu.Ptr, n uint64, s gpu.Stream, t float64) error {
	to, err := g.at(dst, n, 1)
	if err != nil {
		return err
	}
	from, err := g.at(src, n, 1)
	if err != nil {
		return err
	}
	return g.enqueue(s, t, func() {
		if n <= moved || to.whole != nil {
			to.write(dst, from.read(src, n))
		}
	})
}

func (g *GPU) DtoD(dst, src gpu.Ptr, n uint64, s gpu.Stream) error {
	return g.transfer(dst, src, n, s, g.cfg.Launch+2*ns(int(n), g.cfg.Bandwidth))
}

func (g *GPU) Peer(dst gpu.Ptr, dc gpu.Context, src gpu.Ptr, sc gpu.Context, n uint64, s gpu.Stream) error {
	for _, x := range []struct {
		p gpu.Ptr
		c gpu.Context
	}{{dst, dc}, {src, sc}} {
		b, err := g.at(x.p, n, 1)
		if err != nil {
			return err
		}
		if b.dev != int(x.c)-1 {
			return fmt.Errorf("fake: memory of device %d with the context of device %d: %w", b.dev, int(x.c)-1, gpu.InvalidValue)
		}
	}
	rate := g.cfg.PeerBandwidth
	if !g.cfg.P2P {
		rate = g.cfg.HostBandwidth / 2 // through the host
	}
	return g.transfer(dst, src, n, s, g.cfg.Copy+ns(int(n), rate))
}

func ns(bytes int, rate float64) float64 { return float64(bytes) / rate * 1e9 }
