package fake

import (
	"fmt"
	"maps"
	"strings"
	"unsafe"

	"placer/hw/gpu"
)

// GPU is the fake. It implements gpu.Driver and gpu.Partitioner; BLAS returns its
// cuBLAS.
type GPU struct {
	cfg     Config
	now     float64 // the host's clock, nanoseconds
	next    uint64  // handle
	current gpu.Context
	refs    []int           // retained contexts of each device
	peers   map[[2]int]bool // whose kernels reach whose memory
	used    []uint64
	streams map[gpu.Stream]*stream
	events  map[gpu.Event]*event
	blocks  map[gpu.Ptr]*block
	host    map[*byte]int
	modules map[gpu.Module]module
	funcs   map[gpu.Func]function
	graphs  map[gpu.Graph]*capture
	execs   map[gpu.Exec]*capture
	handles map[gpu.Handle]*handle
	parts   int // alive
}

var (
	_ gpu.Driver      = (*GPU)(nil)
	_ gpu.Partitioner = (*GPU)(nil)
)

// New returns a machine as cfg says.
func New(cfg Config) *GPU {
	return &GPU{cfg: cfg, next: 1 << 20, refs: make([]int, cfg.Devices), used: make([]uint64, cfg.Devices), streams: map[gpu.Stream]*stream{}, events: map[gpu.Event]*event{},
		blocks: map[gpu.Ptr]*block{}, host: map[*byte]int{}, modules: map[gpu.Module]module{}, funcs: map[gpu.Func]function{}, peers: map[[2]int]bool{},
		graphs: map[gpu.Graph]*capture{}, execs: map[gpu.Exec]*capture{}, handles: map[gpu.Handle]*handle{}}
}

// Clock returns the host's virtual time in seconds. Asynchronous calls advance it
// by their cost, synchronous ones to the end of what they wait for.
func (g *GPU) Clock() float64 { return g.now / 1e9 }

func (g *GPU) handle() uint64 { g.next += 64; return g.next }

func (g *GPU) Version() int        { return g.cfg.CUDA }
func (g *GPU) Count() (int, error) { return g.cfg.Devices, nil }

func (g *GPU) device(dev int) error {
	if dev < 0 || dev >= g.cfg.Devices {
		return gpu.InvalidDevice
	}
	return nil
}

func (g *GPU) Name(dev int) (string, error) { return g.cfg.Name, g.device(dev) }
func (g *GPU) UUID(dev int) (u [16]byte, err error) {
	u[15] = byte(dev)
	return u, g.device(dev)
}
func (g *GPU) PCIBusID(dev int) (string, error) {
	return fmt.Sprintf("0000:%02X:00.0", dev+1), g.device(dev)
}
func (g *GPU) TotalMem(dev int) (uint64, error) { return g.cfg.Memory, g.device(dev) }
func (g *GPU) Attribute(dev int, a gpu.Attribute) (int, error) {
	known := map[gpu.Attribute]int{gpu.ClockKHz: 1_500_000, gpu.SMCount: g.cfg.SMs, gpu.MemoryClockKHz: 2_000_000, gpu.BusWidthBits: 4096, gpu.L2Bytes: 32 << 20,
		gpu.AsyncEngines: 3, gpu.Major: 8, gpu.Minor: 0}
	v, ok := known[a]
	if !ok {
		return 0, gpu.InvalidValue
	}
	return v, g.device(dev)
}
func (g *GPU) CanPeer(a, b int) (bool, error) { return g.cfg.P2P && a != b, nil }

func (g *GPU) Retain(dev int) (gpu.Context, error) {
	if err := g.device(dev); err != nil {
		return 0, err
	}
	g.refs[dev]++
	return gpu.Context(dev + 1), nil
}
func (g *GPU) Release(dev int) error {
	if g.device(dev) != nil || g.refs[dev] == 0 {
		return gpu.InvalidContext
	}
	if g.refs[dev]--; g.refs[dev] == 0 { // what is left in the context goes with it
		for p, b := range g.blocks {
			if b.dev == dev {
				_ = g.drop(p)
			}
		}
		maps.DeleteFunc(g.peers, func(k [2]int, _ bool) bool { return k[0] == dev })
	}
	return nil
}
func (g *GPU) live(c gpu.Context) error {
	if c == 0 || int(c) > g.cfg.Devices || g.refs[c-1] == 0 {
		return gpu.InvalidContext
	}
	return nil
}
func (g *GPU) SetCurrent(c gpu.Context) error {
	if err := g.live(c); err != nil {
		return err
	}
	g.current = c
	return nil
}

// dev returns the current device.
func (g *GPU) dev() (int, error) { return int(g.current) - 1, g.live(g.current) }

func (g *GPU) EnablePeer(c gpu.Context) error {
	d, err := g.dev()
	if err != nil {
		return err
	}
	if !g.cfg.P2P || c == g.current {
		return gpu.Code(217)
	}
	if err := g.live(c); err != nil {
		return err
	}
	g.peers[[2]int{d, int(c) - 1}] = true
	return nil
}

func (g *GPU) MemInfo() (free, total uint64, err error) {
	d, err := g.dev()
	if err != nil {
		return 0, 0, err
	}
	return g.cfg.Memory - g.used[d], g.cfg.Memory, nil
}

func (g *GPU) HostAlloc(n int) ([]byte, error) {
	if _, err := g.dev(); err != nil {
		return nil, err
	}
	if n <= 0 {
		return nil, gpu.InvalidValue
	}
	b := make([]byte, n)
	g.host[unsafe.SliceData(b)] = n
	return b, nil
}
func (g *GPU) HostFree(b []byte) error {
	if _, ok := g.host[unsafe.SliceData(b)]; !ok {
		return gpu.InvalidValue
	}
	delete(g.host, unsafe.SliceData(b))
	return nil
}

// pinned reports whether b lies in memory of HostAlloc.
func (g *GPU) pinned(b []byte) error {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for p, n := range g.host {
		if lo := uintptr(unsafe.Pointer(p)); at >= lo && at+uintptr(len(b)) <= lo+uintptr(n) {
			return nil
		}
	}
	return fmt.Errorf("fake: host memory of an asynchronous copy is not pinned: %w", gpu.InvalidValue)
}

// module and function belong to the device on which they were loaded.
type (
	module struct {
		text string
		dev  int
	}
	function struct {
		name string
		dev  int
	}
)

func (g *GPU) LoadPTX(text string) (gpu.Module, error) {
	d, err := g.dev()
	if err != nil {
		return 0, err
	}
	if !strings.Contains(text, "\n.version ") && !strings.HasPrefix(text, ".version ") {
		return 0, fmt.Errorf("%w: no .version directive", gpu.InvalidPTX)
	}
	m := gpu.Module(g.handle())
	g.modules[m] = module{text, d}
	return m, nil
}
func (g *GPU) Func(m gpu.Module, name string) (gpu.Func, error) {
	x, ok := g.modules[m]
	if !ok {
		return 0, gpu.InvalidHandle
	}
	if !strings.Contains(x.text, ".entry "+name+"(") {
		return 0, gpu.NotFound
	}
	f := gpu.Func(g.handle())
	g.funcs[f] = function{name, x.dev}
	return f, nil
}

// maxParts is how many parts may be alive: a driver's are few too.
const maxParts = 64

// Partition divides the multiprocessors evenly. The parts are as fast as the
// whole, unless Config.Divided says otherwise: the fake has no contention that would
// tell them apart.
func (g *GPU) Partition(dev, parts int) ([]gpu.Part, error) {
	d, err := g.dev()
	if err != nil {
		return nil, err
	}
	if d != dev || parts < 1 || parts > g.cfg.SMs {
		return nil, gpu.InvalidValue
	}
	if g.parts+parts > maxParts {
		return nil, gpu.OutOfMemory
	}
	g.parts += parts
	out := make([]gpu.Part, parts)
	for i := range out {
		closed := false
		newStream := g.NewStream
		if g.cfg.Divided {
			newStream = func(priority int) (gpu.Stream, error) {
				s, err := g.NewStream(priority)
				if err == nil {
					share := float64(g.cfg.SMs/parts) / float64(g.cfg.SMs)
					g.streams[s].arithmetic, g.streams[s].bandwidth = share, min(1, 1.5*share)
				}
				return s, err
			}
		}
		out[i] = gpu.Part{SMs: g.cfg.SMs / parts, NewStream: newStream, Close: func() error {
			if closed {
				return gpu.InvalidHandle
			}
			closed = true
			g.parts--
			return nil
		}}
	}
	return out, nil
}
