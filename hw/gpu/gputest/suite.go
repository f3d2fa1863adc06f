package gputest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"placer/hw/gpu"
	"placer/hw/gpu/kernel"
)

// Run checks d and, where it is not nil, b.
func Run(t *testing.T, d gpu.Driver, b gpu.BLAS) {
	for _, c := range []struct {
		name string
		f    func(*session)
	}{
		{"identity", identity}, {"contexts", contexts}, {"memory", memory}, {"out of memory", outOfMemory}, {"streams", streams},
		{"kernels", kernels}, {"bad PTX", badPTX}, {"graphs", graphs}, {"borders of a capture", borders}, {"peer copies", peers}, {"partition", partition},
	} {
		t.Run(c.name, func(t *testing.T) { locked(t, d, b, c.f) })
	}
	if b == nil {
		t.Log("no cuBLAS: products are not checked")
		return
	}
	t.Run("products", func(t *testing.T) { locked(t, d, b, products) })
	t.Run("product in a graph", func(t *testing.T) { locked(t, d, b, capturedProduct) })
}

// session is one check on device 0.
type session struct {
	*testing.T
	d   gpu.Driver
	b   gpu.BLAS
	ctx gpu.Context
	k   *kernel.Set
	s   gpu.Stream
}

// stop ends a check from within, for a reason.
type stop struct{ error }

// must returns v, or ends the check with the error and the line that calls it. The
// check is not on the test's goroutine, so FailNow is not for it.
func must[T any](v T, err error) T {
	if err != nil {
		_, file, line, _ := runtime.Caller(1)
		panic(stop{fmt.Errorf("%s:%d: %w", filepath.Base(file), line, err)})
	}
	return v
}

func locked(t *testing.T, d gpu.Driver, b gpu.BLAS, f func(*session)) {
	t.Helper()
	err := gpu.Locked(func() error {
		defer func() {
			if r := recover(); r != nil {
				s, ok := r.(stop)
				if !ok {
					panic(r)
				}
				t.Error(s)
			}
		}()
		x := &session{T: t, d: d, b: b}
		x.ctx = must(d.Retain(0))
		defer d.Release(0)
		x.ok("SetCurrent", d.SetCurrent(x.ctx))
		x.k = must(kernel.Load(d, 0))
		x.s = must(d.NewStream(0))
		defer d.DestroyStream(x.s)
		f(x)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// ok ends the check on an error, as must does.
func (x *session) ok(what string, err error) {
	if err != nil {
		panic(stop{fmt.Errorf("%s: %w", what, err)})
	}
}

func (x *session) alloc(bytes uint64) gpu.Ptr {
	x.Helper()
	p := must(x.d.Alloc(bytes))
	return p
}

// download returns n bytes at p, after everything on the stream.
func (x *session) download(p gpu.Ptr, n int) []byte {
	x.Helper()
	h := must(x.d.HostAlloc(n))
	defer x.d.HostFree(h)
	x.ok("DtoH", x.d.DtoH(h, p, x.s))
	x.ok("SyncStream", x.d.SyncStream(x.s))
	return append([]byte(nil), h...)
}

func (x *session) upload(p gpu.Ptr, data []byte) {
	x.Helper()
	h := must(x.d.HostAlloc(len(data)))
	copy(h, data)
	x.ok("HtoD", x.d.HtoD(p, h, x.s))
	x.ok("SyncStream", x.d.SyncStream(x.s))
	x.ok("HostFree", x.d.HostFree(h))
}

func identity(x *session) {
	n := must(x.d.Count())
	if n < 1 || x.d.Version() < 11000 {
		x.Errorf("%d devices, CUDA %d", n, x.d.Version())
	}
	seen := map[[16]byte]bool{}
	for i := range n {
		name := must(x.d.Name(i))
		u := must(x.d.UUID(i))
		pci := must(x.d.PCIBusID(i))
		total := must(x.d.TotalMem(i))
		if name == "" || seen[u] || strings.Count(pci, ":") != 2 || total < 1<<28 {
			x.Errorf("device %d: name %q, UUID %x, PCI %q, %d bytes", i, name, u, pci, total)
		}
		seen[u] = true
		for _, a := range []gpu.Attribute{gpu.ClockKHz, gpu.SMCount, gpu.L2Bytes, gpu.Major, gpu.BusWidthBits} {
			if v, err := x.d.Attribute(i, a); err != nil || v <= 0 {
				x.Errorf("device %d: attribute %d is %d (%v)", i, a, v, err)
			}
		}
	}
	if _, err := x.d.Retain(n + 7); err == nil {
		x.Error("Retain of a device that is not there succeeded")
	}
}

func contexts(x *session) {
	free, total, err := x.d.MemInfo()
	x.ok("MemInfo", err)
	p := x.alloc(64 << 20)
	after, _, err := x.d.MemInfo()
	x.ok("MemInfo", err)
	if free > total || after > free-(64<<20) {
		x.Errorf("%d of %d bytes free, %d after an allocation of 64 MiB", free, total, after)
	}
	x.ok("Free", x.d.Free(p))
	again, _, err := x.d.MemInfo()
	x.ok("MemInfo", err)
	if again <= after {
		x.Errorf("%d bytes free after Free, %d before", again, after)
	}
}

func memory(x *session) {
	const n = 64 << 10
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(i*7 + i>>8)
	}
	a, b := x.alloc(n), x.alloc(n)
	defer x.d.Free(a)
	defer x.d.Free(b)
	if a%256 != 0 || b%256 != 0 || a == b {
		x.Errorf("addresses %x and %x", a, b)
	}
	x.upload(a, data)
	x.ok("DtoD", x.d.DtoD(b, a, n, x.s))
	x.ok("DtoD", x.d.DtoD(b, a+256, 1024, x.s))
	got := x.download(b, n)
	copy(data, data[256:256+1024])
	if string(got) != string(data) {
		x.Error("what came back is not what was sent")
	}
}

func outOfMemory(x *session) {
	_, err := x.d.Alloc(1 << 50)
	if !errors.Is(err, gpu.OutOfMemory) {
		x.Errorf("2^50 bytes: error %v, want %v", err, gpu.OutOfMemory)
	}
	free, _, err := x.d.MemInfo()
	x.ok("MemInfo", err)
	if _, err = x.d.Alloc(free + 1<<30); !errors.Is(err, gpu.OutOfMemory) {
		x.Errorf("one GiB more than is free: error %v, want %v", err, gpu.OutOfMemory)
	}
	p := x.alloc(1 << 20) // the context has survived
	x.ok("Free", x.d.Free(p))
}

func streams(x *session) {
	other := must(x.d.NewStream(-1))
	defer x.d.DestroyStream(other)
	var e [3]gpu.Event
	for i := range e {
		e[i] = must(x.d.NewEvent(true))
		defer x.d.DestroyEvent(e[i])
	}
	const ns = 2e6
	x.ok("Record", x.d.Record(e[0], x.s))
	x.ok("Spin", x.k.Spin(x.d, x.s, ns))
	x.ok("Record", x.d.Record(e[1], x.s))
	x.ok("Wait", x.d.Wait(other, e[1])) // other goes on where x.s has come to
	x.ok("Spin", x.k.Spin(x.d, other, ns))
	x.ok("Record", x.d.Record(e[2], other))
	x.ok("SyncEvent", x.d.SyncEvent(e[2]))
	first := must(x.d.ElapsedMS(e[0], e[1]))
	both := must(x.d.ElapsedMS(e[0], e[2]))
	if first < 1.9 || both < 3.9 || both < first+1.9 {
		x.Errorf("two waits of 2 ms one after the other took %v ms and %v ms in all", first, both)
	}
	x.ok("SyncStream", x.d.SyncStream(x.s))
}

func kernels(x *session) {
	const n = 1000 // no multiple of a block
	a, b := x.alloc(4*n), x.alloc(4*n)
	defer x.d.Free(a)
	defer x.d.Free(b)
	for _, t := range []gpu.DType{gpu.F32, gpu.BF16, gpu.F16, gpu.F8} {
		x.ok("Fill", x.k.Fill(x.d, x.s, a, 4*n, t, 99))
		got := x.download(a, 4*n)
		for i := range n {
			if w := binary.LittleEndian.Uint32(got[4*i:]); w != kernel.Word(uint64(i), t, 99) {
				x.Errorf("%v: word %d is %08x, want %08x", t, i, w, kernel.Word(uint64(i), t, 99))
				break
			}
		}
	}
	x.ok("Fill", x.k.Fill(x.d, x.s, a, 4*n, gpu.F32, 5))
	x.ok("Stream", x.k.Stream(x.d, x.s, a, 4*n, b, 4*n, 0))
	if string(x.download(a, 4*n)) != string(x.download(b, 4*n)) {
		x.Error("a stream without arithmetic did not copy")
	}
	x.ok("Stream", x.k.Stream(x.d, x.s, a, 4*n, b, 1600, 3))
	x.ok("Stream", x.k.Stream(x.d, x.s, a, 1600, b, 4*n, 0))
	x.ok("Nop", x.k.Nop(x.d, x.s))
	x.ok("SyncStream", x.d.SyncStream(x.s))
	m := must(x.d.LoadPTX(kernel.PTX()))
	if _, err := x.d.Func(m, "absent"); !errors.Is(err, gpu.NotFound) {
		x.Errorf("a kernel that is not there: error %v, want %v", err, gpu.NotFound)
	}
}

func badPTX(x *session) {
	if _, err := x.d.LoadPTX("this is no PTX"); err == nil {
		x.Error("text that is no PTX was compiled")
	}
}

// graphs captures work on two streams and runs it: the same effect as running it
// directly, every time.
func graphs(x *session) {
	const n = 4096
	a, b, c := x.alloc(n), x.alloc(n), x.alloc(n)
	for _, p := range []gpu.Ptr{a, b, c} {
		defer x.d.Free(p)
	}
	other := must(x.d.NewStream(0))
	defer x.d.DestroyStream(other)
	fork := must(x.d.NewEvent(false))
	join := must(x.d.NewEvent(false))

	// A kernel is loaded by its first launch, which is none of a capture's business.
	x.ok("Stream", x.k.Stream(x.d, x.s, b, n, c, n, 0))
	x.ok("Spin", x.k.Spin(x.d, x.s, 0))
	x.ok("SyncStream", x.d.SyncStream(x.s))
	x.ok("BeginCapture", x.d.BeginCapture(x.s))
	x.ok("Stream", x.k.Stream(x.d, x.s, a, n, b, n, 0))
	x.ok("Record", x.d.Record(fork, x.s))
	x.ok("Wait", x.d.Wait(other, fork))
	x.ok("DtoD", x.d.DtoD(c, b, n, other))
	x.ok("Record", x.d.Record(join, other))
	x.ok("Spin", x.k.Spin(x.d, x.s, 1000))
	x.ok("Wait", x.d.Wait(x.s, join))
	g := must(x.d.EndCapture(x.s))
	e := must(x.d.Instantiate(g))
	for seed := range uint32(2) {
		x.ok("Fill", x.k.Fill(x.d, x.s, a, n, gpu.F32, seed))
		if string(x.download(a, n)) == string(x.download(c, n)) {
			x.Error("captured work ran before its graph was launched")
		}
		x.ok("LaunchExec", x.d.LaunchExec(e, x.s))
		if string(x.download(a, n)) != string(x.download(c, n)) {
			x.Errorf("launch %d of a graph did not copy", seed)
		}
	}
	x.ok("DestroyExec", x.d.DestroyExec(e))
	x.ok("DestroyGraph", x.d.DestroyGraph(g))
}

// borders: work that crosses the border of a capture ends it with an error, and
// streams and context live on.
func borders(x *session) {
	other := must(x.d.NewStream(0))
	defer x.d.DestroyStream(other)
	e := must(x.d.NewEvent(false))
	defer x.d.DestroyEvent(e)
	x.ok("Nop", x.k.Nop(x.d, x.s)) // loads the kernel
	x.ok("Nop", x.k.Nop(x.d, other))

	x.ok("BeginCapture", x.d.BeginCapture(x.s))
	x.ok("Record", x.d.Record(e, x.s))
	x.ok("Wait", x.d.Wait(other, e))
	x.ok("Nop", x.k.Nop(x.d, other))
	if _, err := x.d.EndCapture(x.s); !errors.Is(err, gpu.Unjoined) {
		x.Errorf("a capture that leaves a stream behind: error %v, want %v", err, gpu.Unjoined)
	}

	x.ok("Record", x.d.Record(e, other))
	x.ok("BeginCapture", x.d.BeginCapture(x.s))
	x.ok("Nop", x.k.Nop(x.d, x.s))
	if err := x.d.Wait(x.s, e); !errors.Is(err, gpu.Isolation) {
		x.Errorf("a wait in a capture for work outside: error %v, want %v", err, gpu.Isolation)
	}
	if _, err := x.d.EndCapture(x.s); err == nil {
		x.Error("a capture with a wait for work outside became a graph")
	}
	for _, s := range []gpu.Stream{x.s, other} {
		x.ok("Nop", x.k.Nop(x.d, s))
		x.ok("SyncStream", x.d.SyncStream(s))
	}
}

func peers(x *session) {
	n := must(x.d.Count())
	const size = 8192
	here := x.alloc(size)
	defer x.d.Free(here)
	x.ok("Fill", x.k.Fill(x.d, x.s, here, size, gpu.F32, 3))
	want := x.download(here, size)
	for to := 1; to < n; to++ {
		ctx := must(x.d.Retain(to))
		can := must(x.d.CanPeer(0, to))
		if can {
			x.ok("EnablePeer", x.d.EnablePeer(ctx))
		}
		x.ok("SetCurrent", x.d.SetCurrent(ctx))
		there := x.alloc(size)
		x.ok("SetCurrent", x.d.SetCurrent(x.ctx))
		back := x.alloc(size)
		x.ok("Peer", x.d.Peer(there, ctx, here, x.ctx, size, x.s))
		x.ok("Peer", x.d.Peer(back, x.ctx, there, ctx, size, x.s))
		if string(x.download(back, size)) != string(want) {
			x.Errorf("data did not survive the way to device %d and back", to)
		}
		x.ok("Free", x.d.Free(back))
		x.ok("SetCurrent", x.d.SetCurrent(ctx))
		x.ok("Free", x.d.Free(there))
		x.ok("SetCurrent", x.d.SetCurrent(x.ctx))
		x.ok("Release", x.d.Release(to))
	}
}

func partition(x *session) {
	p, ok := x.d.(gpu.Partitioner)
	if !ok {
		return // an optional capability
	}
	parts, err := p.Partition(0, 2)
	if errors.Is(err, gpu.NotSupported) {
		x.Logf("no green contexts: %v", err)
		return
	}
	x.ok("Partition", err)
	all := must(x.d.Attribute(0, gpu.SMCount))
	if len(parts) != 2 || parts[0].SMs < 1 || parts[0].SMs+parts[1].SMs > all {
		x.Errorf("%d parts of %d multiprocessors: %+v", len(parts), all, parts)
	}
	var s [2]gpu.Stream
	for i, q := range parts {
		s[i] = must(q.NewStream(0))
		x.ok("Spin", x.k.Spin(x.d, s[i], 1000))
	}
	// Events of the device's own context order streams of parts, among themselves
	// and with others, also while they are captured.
	event := func(timing bool) gpu.Event {
		e := must(x.d.NewEvent(timing))
		return e
	}
	from, to := event(true), event(true)
	behind := func(pairs ...[2]gpu.Stream) { // a spin on the second stream behind the first
		for _, pair := range pairs {
			e := event(false)
			x.ok("Record", x.d.Record(e, pair[0]))
			x.ok("Wait", x.d.Wait(pair[1], e))
			x.ok("Spin", x.k.Spin(x.d, pair[1], 100_000))
		}
	}
	x.ok("Record", x.d.Record(from, s[0]))
	behind([2]gpu.Stream{s[0], s[1]}, [2]gpu.Stream{s[1], x.s}, [2]gpu.Stream{x.s, s[0]})
	x.ok("Record", x.d.Record(to, s[0]))
	x.ok("SyncEvent", x.d.SyncEvent(to))
	if ms, err := x.d.ElapsedMS(from, to); err != nil || ms < 0.29 {
		x.Errorf("three spins of 0.1 ms on streams of parts took %v ms: %v", ms, err)
	}
	for _, way := range [][3]gpu.Stream{{x.s, s[0], s[1]}, {s[0], s[1], x.s}} {
		x.ok("BeginCapture", x.d.BeginCapture(way[0]))
		behind([2]gpu.Stream{way[0], way[1]}, [2]gpu.Stream{way[1], way[2]}, [2]gpu.Stream{way[2], way[0]})
		g := must(x.d.EndCapture(way[0]))
		e := must(x.d.Instantiate(g))
		x.ok("LaunchExec", x.d.LaunchExec(e, way[0]))
		x.ok("SyncStream", x.d.SyncStream(way[0]))
		x.d.DestroyExec(e)
		x.d.DestroyGraph(g)
	}
	for i, q := range parts {
		x.ok("SyncStream", x.d.SyncStream(s[i]))
		x.ok("DestroyStream", x.d.DestroyStream(s[i]))
		x.ok("Close", q.Close())
	}
}
