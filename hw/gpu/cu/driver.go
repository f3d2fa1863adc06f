//go:build placer_cu

package cu

/*
#cgo LDFLAGS: -lcuda
#include <cuda.h>

static CUresult beginCapture(CUstream s) { return cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED); }
static CUresult instantiate(CUgraphExec *e, CUgraph g) { return cuGraphInstantiateWithFlags(e, g, 0); }
*/
import "C"

import (
	"fmt"
	"reflect"
	"unsafe"

	"gorgonia.org/cu"

	"placer/hw/gpu"
)

// driver drives GPUs through gorgonia.org/cu. What that package lacks (pinned
// memory, capturing and launching of graphs, the PCI address) is called directly.
type driver struct{}

// Open returns the driver, or a gpu.ErrNoDevice.
func Open() (gpu.Driver, error) {
	n, err := cu.NumDevices()
	if err != nil || n == 0 {
		return nil, fmt.Errorf("%w: gorgonia.org/cu finds none (%v)", gpu.ErrNoDevice, err)
	}
	return driver{}, nil
}

// result turns a CUresult into an error.
func result(r C.CUresult) error {
	if r == 0 {
		return nil
	}
	return gpu.Code(r)
}

// code turns an error of package cu, whose type is an integer that is not exported,
// into a gpu.Code.
func code(err error) error {
	if err == nil {
		return nil
	}
	if v := reflect.ValueOf(err); v.CanInt() {
		return fmt.Errorf("gorgonia.org/cu: %w", gpu.Code(v.Int()))
	}
	return fmt.Errorf("gorgonia.org/cu: %w", err)
}

// Package cu keeps each handle in a struct of one word.
func word[T any](x T) uint64 {
	return uint64(*(*uintptr)(unsafe.Pointer(&x)))
}

func wrap[T any](w uint64) (x T) {
	*(*uintptr)(unsafe.Pointer(&x)) = uintptr(w)
	return x
}

func stream(s gpu.Stream) cu.Stream { return wrap[cu.Stream](uint64(s)) }
func event(e gpu.Event) cu.Event    { return wrap[cu.Event](uint64(e)) }

func (driver) Version() int        { return cu.Version() }
func (driver) Count() (int, error) { n, err := cu.NumDevices(); return n, code(err) }
func (driver) Name(d int) (string, error) {
	s, err := cu.Device(d).Name()
	return s, code(err)
}
func (driver) UUID(d int) ([16]byte, error) {
	u, err := cu.Device(d).UUID()
	return u, code(err)
}
func (driver) TotalMem(d int) (uint64, error) {
	n, err := cu.Device(d).TotalMem()
	return uint64(n), code(err)
}
func (driver) PCIBusID(d int) (string, error) {
	var b [32]C.char
	err := result(C.cuDeviceGetPCIBusId(&b[0], C.int(len(b)), C.CUdevice(d)))
	return C.GoString(&b[0]), err
}
func (driver) Attribute(d int, a gpu.Attribute) (int, error) {
	v, err := cu.Device(d).Attribute(cu.DeviceAttribute(a))
	return v, code(err)
}
func (driver) CanPeer(a, b int) (bool, error) {
	v, err := cu.Device(a).CanAccessPeer(cu.Device(b))
	return v != 0, code(err)
}

func (driver) Retain(d int) (gpu.Context, error) {
	c, err := cu.Device(d).RetainPrimaryCtx()
	return gpu.Context(word(c)), code(err)
}
func (driver) Release(d int) error { return result(C.cuDevicePrimaryCtxRelease(C.CUdevice(d))) }
func (driver) SetCurrent(c gpu.Context) error {
	return code(cu.SetCurrentContext(wrap[cu.CUContext](uint64(c))))
}
func (driver) EnablePeer(c gpu.Context) error {
	err := result(C.cuCtxEnablePeerAccess(*(*C.CUcontext)(unsafe.Pointer(&c)), 0))
	if err == gpu.PeerEnabled {
		return nil
	}
	return err
}
func (driver) MemInfo() (free, total uint64, err error) {
	f, t, err := cu.MemInfo()
	return uint64(f), uint64(t), code(err)
}

func (driver) NewStream(priority int) (gpu.Stream, error) {
	s, err := cu.MakeStreamWithPriority(priority, cu.NonBlocking)
	return gpu.Stream(word(s)), code(err)
}
func (driver) DestroyStream(s gpu.Stream) error {
	return result(C.cuStreamDestroy(*(*C.CUstream)(unsafe.Pointer(&s))))
}
func (driver) SyncStream(s gpu.Stream) error          { return code(stream(s).Synchronize()) }
func (driver) Wait(s gpu.Stream, e gpu.Event) error   { return code(stream(s).Wait(event(e), 0)) }
func (driver) Record(e gpu.Event, s gpu.Stream) error { return code(event(e).Record(stream(s))) }
func (driver) SyncEvent(e gpu.Event) error            { return code(event(e).Synchronize()) }
func (driver) NewEvent(timing bool) (gpu.Event, error) {
	flags := cu.EventFlags(cu.DisableTiming)
	if timing {
		flags = cu.DefaultEvent
	}
	e, err := cu.MakeEvent(flags)
	return gpu.Event(word(e)), code(err)
}
func (driver) DestroyEvent(e gpu.Event) error {
	return result(C.cuEventDestroy(*(*C.CUevent)(unsafe.Pointer(&e))))
}
func (driver) ElapsedMS(a, b gpu.Event) (float32, error) {
	ms, err := event(a).Elapsed(event(b))
	return float32(ms), code(err)
}

// Alloc is called directly: package cu takes signed sizes.
func (driver) Alloc(n uint64) (gpu.Ptr, error) {
	var p C.CUdeviceptr
	err := result(C.cuMemAlloc(&p, C.size_t(n)))
	return gpu.Ptr(p), err
}
func (driver) Free(p gpu.Ptr) error { return code(cu.MemFree(cu.DevicePtr(p))) }
func (driver) HostAlloc(n int) ([]byte, error) {
	var p unsafe.Pointer
	if err := result(C.cuMemHostAlloc(&p, C.size_t(n), C.CU_MEMHOSTALLOC_PORTABLE)); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), n), nil
}
func (driver) HostFree(b []byte) error {
	return result(C.cuMemFreeHost(unsafe.Pointer(unsafe.SliceData(b))))
}
func (driver) HtoD(d gpu.Ptr, b []byte, s gpu.Stream) error {
	return code(cu.MemcpyHtoDAsync(cu.DevicePtr(d), unsafe.Pointer(unsafe.SliceData(b)), int64(len(b)), stream(s)))
}
func (driver) DtoH(b []byte, p gpu.Ptr, s gpu.Stream) error {
	return code(cu.MemcpyDtoHAsync(unsafe.Pointer(unsafe.SliceData(b)), cu.DevicePtr(p), int64(len(b)), stream(s)))
}
func (driver) DtoD(d, x gpu.Ptr, n uint64, s gpu.Stream) error {
	return code(cu.MemcpyDtoDAsync(cu.DevicePtr(d), cu.DevicePtr(x), int64(n), stream(s)))
}
func (driver) Peer(d gpu.Ptr, dc gpu.Context, x gpu.Ptr, xc gpu.Context, n uint64, s gpu.Stream) error {
	return code(cu.MemcpyPeerAsync(cu.DevicePtr(d), wrap[cu.CUContext](uint64(dc)), cu.DevicePtr(x), wrap[cu.CUContext](uint64(xc)), int64(n), stream(s)))
}

func (driver) LoadPTX(text string) (gpu.Module, error) {
	m, err := cu.LoadData(text)
	return gpu.Module(word(m)), code(err)
}
func (driver) Func(m gpu.Module, name string) (gpu.Func, error) {
	f, err := wrap[cu.Module](uint64(m)).Function(name)
	return gpu.Func(word(f)), code(err)
}
func (driver) Launch(f gpu.Func, grid, block uint32, s gpu.Stream, args []uint64) error {
	pointers := make([]unsafe.Pointer, len(args))
	for i := range args {
		pointers[i] = unsafe.Pointer(&args[i])
	}
	return code(wrap[cu.Function](uint64(f)).Launch(int(grid), 1, 1, int(block), 1, 1, 0, stream(s), pointers))
}

func (driver) BeginCapture(s gpu.Stream) error {
	return result(C.beginCapture(*(*C.CUstream)(unsafe.Pointer(&s))))
}
func (driver) EndCapture(s gpu.Stream) (gpu.Graph, error) {
	var g C.CUgraph
	err := result(C.cuStreamEndCapture(*(*C.CUstream)(unsafe.Pointer(&s)), &g))
	return gpu.Graph(uintptr(unsafe.Pointer(g))), err
}
func (driver) Instantiate(g gpu.Graph) (gpu.Exec, error) {
	var e C.CUgraphExec
	err := result(C.instantiate(&e, *(*C.CUgraph)(unsafe.Pointer(&g))))
	return gpu.Exec(uintptr(unsafe.Pointer(e))), err
}
func (driver) LaunchExec(e gpu.Exec, s gpu.Stream) error {
	return result(C.cuGraphLaunch(*(*C.CUgraphExec)(unsafe.Pointer(&e)), *(*C.CUstream)(unsafe.Pointer(&s))))
}
func (driver) DestroyGraph(g gpu.Graph) error {
	return result(C.cuGraphDestroy(*(*C.CUgraph)(unsafe.Pointer(&g))))
}
func (driver) DestroyExec(e gpu.Exec) error {
	return result(C.cuGraphExecDestroy(*(*C.CUgraphExec)(unsafe.Pointer(&e))))
}
