package cuda

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"placer/hw/gpu"
	"placer/internal/dynlib"
)

// nonBlocking streams do not wait for the legacy stream.
const nonBlocking = 1

// driver is the loaded driver.
type driver struct {
	functions
	version int

	mu   sync.Mutex // of args
	args *arguments
}

var (
	_ gpu.Driver      = (*driver)(nil)
	_ gpu.Partitioner = (*driver)(nil)
)

// functions are addresses of the driver's functions.
type functions struct {
	init, driverVersion, deviceCount, deviceName, totalMem, attribute, canPeer, uuid, pciBusID uintptr
	retain, release, setCurrent, enablePeer, memInfo                                           uintptr
	streamCreate, streamDestroy, streamSync, streamWait, beginCapture, endCapture              uintptr
	eventCreate, eventDestroy, eventRecord, eventSync, eventElapsed                            uintptr
	memAlloc, memFree, hostAlloc, hostFree, copyDtoD, copyHtoD, copyDtoH, copyPeer             uintptr
	moduleLoad, moduleFunction, launch                                                         uintptr
	instantiate, graphLaunch, execDestroy, graphDestroy                                        uintptr
	green                                                                                      green
}

func (f *functions) symbols() dynlib.Symbols {
	return dynlib.Symbols{
		"cuInit": &f.init, "cuDriverGetVersion": &f.driverVersion, "cuDeviceGetCount": &f.deviceCount, "cuDeviceGetName": &f.deviceName,
		"cuDeviceTotalMem_v2": &f.totalMem, "cuDeviceGetAttribute": &f.attribute, "cuDeviceCanAccessPeer": &f.canPeer, "cuDeviceGetUuid": &f.uuid,
		"cuDeviceGetPCIBusId": &f.pciBusID, "cuDevicePrimaryCtxRetain": &f.retain, "cuDevicePrimaryCtxRelease_v2": &f.release,
		"cuCtxSetCurrent": &f.setCurrent, "cuCtxEnablePeerAccess": &f.enablePeer, "cuMemGetInfo_v2": &f.memInfo,
		"cuStreamCreateWithPriority": &f.streamCreate, "cuStreamDestroy_v2": &f.streamDestroy, "cuStreamSynchronize": &f.streamSync,
		"cuStreamWaitEvent": &f.streamWait, "cuStreamBeginCapture_v2": &f.beginCapture, "cuStreamEndCapture": &f.endCapture,
		"cuEventCreate": &f.eventCreate, "cuEventDestroy_v2": &f.eventDestroy, "cuEventRecord": &f.eventRecord, "cuEventSynchronize": &f.eventSync,
		"cuEventElapsedTime": &f.eventElapsed, "cuMemAlloc_v2": &f.memAlloc, "cuMemFree_v2": &f.memFree, "cuMemHostAlloc": &f.hostAlloc,
		"cuMemFreeHost": &f.hostFree, "cuMemcpyDtoDAsync_v2": &f.copyDtoD, "cuMemcpyHtoDAsync_v2": &f.copyHtoD, "cuMemcpyDtoHAsync_v2": &f.copyDtoH,
		"cuMemcpyPeerAsync": &f.copyPeer, "cuModuleLoadDataEx": &f.moduleLoad, "cuModuleGetFunction": &f.moduleFunction, "cuLaunchKernel": &f.launch,
		"cuGraphInstantiateWithFlags": &f.instantiate, "cuGraphLaunch": &f.graphLaunch, "cuGraphExecDestroy": &f.execDestroy, "cuGraphDestroy": &f.graphDestroy,
	}
}

// Open loads the driver at path, or where drivers are kept if path is empty. The
// error is a gpu.ErrNoDevice if there is none, or if it finds no GPU.
func Open(path string) (gpu.Driver, error) {
	names := libcuda[:]
	if path != "" {
		names = []string{path}
	}
	h, err := dynlib.Open(names...)
	if err != nil && path == "" && dynlib.Absent(err) {
		return nil, fmt.Errorf("%w: libcuda.so.1 is not there", gpu.ErrNoDevice)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", gpu.ErrNoDevice, err)
	}
	d := &driver{args: newArguments()}
	if err := dynlib.Find(h, d.functions.symbols()); err != nil {
		return nil, fmt.Errorf("the driver is too old: %w", err)
	}
	d.green.find(h)
	if err := connect(); err != nil {
		return nil, err
	}
	if err := check(d.init, 0); err != nil {
		return nil, fmt.Errorf("cuInit: %w", err)
	}
	v, err := get[int32](d.driverVersion)
	if err != nil {
		return nil, fmt.Errorf("cuDriverGetVersion: %w", err)
	}
	d.version = int(v)
	return d, nil
}

// connect asks for as many hardware queues as there can be, unless the environment
// names a number. Streams share queues, eight by default, and what shares one runs
// in the order in which it was issued.
func connect() error {
	const name = "CUDA_DEVICE_MAX_CONNECTIONS"
	if os.Getenv(name) != "" {
		return nil
	}
	return os.Setenv(name, "32")
}

func (d *driver) Version() int { return d.version }

func (d *driver) Count() (int, error) {
	n, err := get[int32](d.deviceCount)
	return int(n), err
}

func (d *driver) Name(dev int) (string, error) {
	var b [256]byte
	err := check(d.deviceName, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(dev))
	return text(b[:]), err
}

func (d *driver) UUID(dev int) ([16]byte, error) { return get[[16]byte](d.uuid, uintptr(dev)) }

func (d *driver) PCIBusID(dev int) (string, error) {
	var b [32]byte
	err := check(d.pciBusID, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(dev))
	return text(b[:]), err
}

func (d *driver) TotalMem(dev int) (uint64, error) { return get[uint64](d.totalMem, uintptr(dev)) }

func (d *driver) Attribute(dev int, a gpu.Attribute) (int, error) {
	n, err := get[int32](d.attribute, uintptr(a), uintptr(dev))
	return int(n), err
}

func (d *driver) CanPeer(from, to int) (bool, error) {
	n, err := get[int32](d.canPeer, uintptr(from), uintptr(to))
	return n != 0, err
}

func (d *driver) Retain(dev int) (gpu.Context, error) {
	return get[gpu.Context](d.retain, uintptr(dev))
}

func (d *driver) Release(dev int) error            { return check(d.release, uintptr(dev)) }
func (d *driver) SetCurrent(c gpu.Context) error   { return check(d.setCurrent, uintptr(c)) }
func (d *driver) DestroyStream(s gpu.Stream) error { return check(d.streamDestroy, uintptr(s)) }
func (d *driver) SyncStream(s gpu.Stream) error    { return check(d.streamSync, uintptr(s)) }
func (d *driver) DestroyEvent(e gpu.Event) error   { return check(d.eventDestroy, uintptr(e)) }
func (d *driver) SyncEvent(e gpu.Event) error      { return check(d.eventSync, uintptr(e)) }
func (d *driver) Free(p gpu.Ptr) error             { return check(d.memFree, uintptr(p)) }
func (d *driver) DestroyGraph(g gpu.Graph) error   { return check(d.graphDestroy, uintptr(g)) }
func (d *driver) DestroyExec(e gpu.Exec) error     { return check(d.execDestroy, uintptr(e)) }
func (d *driver) Wait(s gpu.Stream, e gpu.Event) error {
	return check(d.streamWait, uintptr(s), uintptr(e), 0)
}
func (d *driver) Record(e gpu.Event, s gpu.Stream) error {
	return check(d.eventRecord, uintptr(e), uintptr(s))
}
func (d *driver) LaunchExec(e gpu.Exec, s gpu.Stream) error {
	return check(d.graphLaunch, uintptr(e), uintptr(s))
}

func (d *driver) EnablePeer(c gpu.Context) error {
	err := check(d.enablePeer, uintptr(c), 0)
	if errors.Is(err, gpu.PeerEnabled) {
		return nil
	}
	return err
}

func (d *driver) MemInfo() (free, total uint64, err error) {
	err = check(d.memInfo, uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total)))
	return free, total, err
}

func (d *driver) NewStream(priority int) (gpu.Stream, error) {
	return get[gpu.Stream](d.streamCreate, nonBlocking, uintptr(int32(priority)))
}

func (d *driver) NewEvent(timing bool) (gpu.Event, error) {
	flags := uintptr(2) // no timing
	if timing {
		flags = 0
	}
	return get[gpu.Event](d.eventCreate, flags)
}

func (d *driver) ElapsedMS(a, b gpu.Event) (float32, error) {
	return get[float32](d.eventElapsed, uintptr(a), uintptr(b))
}

func (d *driver) Alloc(bytes uint64) (gpu.Ptr, error) {
	return get[gpu.Ptr](d.memAlloc, uintptr(bytes))
}

func (d *driver) HostAlloc(bytes int) ([]byte, error) {
	const portable = 1
	p, err := get[unsafe.Pointer](d.hostAlloc, uintptr(bytes), portable)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), bytes), nil
}

func (d *driver) HostFree(b []byte) error {
	return check(d.hostFree, uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

func (d *driver) HtoD(dst gpu.Ptr, src []byte, s gpu.Stream) error {
	return check(d.copyHtoD, uintptr(dst), uintptr(unsafe.Pointer(unsafe.SliceData(src))), uintptr(len(src)), uintptr(s))
}

func (d *driver) DtoH(dst []byte, src gpu.Ptr, s gpu.Stream) error {
	return check(d.copyDtoH, uintptr(unsafe.Pointer(unsafe.SliceData(dst))), uintptr(src), uintptr(len(dst)), uintptr(s))
}

func (d *driver) DtoD(dst, src gpu.Ptr, bytes uint64, s gpu.Stream) error {
	return check(d.copyDtoD, uintptr(dst), uintptr(src), uintptr(bytes), uintptr(s))
}

func (d *driver) Peer(dst gpu.Ptr, dc gpu.Context, src gpu.Ptr, sc gpu.Context, bytes uint64, s gpu.Stream) error {
	return check(d.copyPeer, uintptr(dst), uintptr(dc), uintptr(src), uintptr(sc), uintptr(bytes), uintptr(s))
}

// LoadPTX adds what the driver's compiler says to its error.
func (d *driver) LoadPTX(source string) (gpu.Module, error) {
	const errorLog, errorLogBytes = 5, 6 // CU_JIT_ERROR_LOG_BUFFER and its size
	src := append([]byte(source), 0)
	log := make([]byte, 4096)
	var pin runtime.Pinner // the driver reaches log through values
	pin.Pin(&log[0])
	defer pin.Unpin()
	options := [2]int32{errorLog, errorLogBytes}
	values := [2]uintptr{uintptr(unsafe.Pointer(&log[0])), uintptr(len(log))}
	var m gpu.Module
	err := check(d.moduleLoad, uintptr(unsafe.Pointer(&m)), uintptr(unsafe.Pointer(&src[0])), 2, uintptr(unsafe.Pointer(&options[0])), uintptr(unsafe.Pointer(&values[0])))
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, text(log))
	}
	return m, nil
}

func (d *driver) Func(m gpu.Module, name string) (gpu.Func, error) {
	b := append([]byte(name), 0)
	var f gpu.Func
	err := check(d.moduleFunction, uintptr(unsafe.Pointer(&f)), uintptr(m), uintptr(unsafe.Pointer(&b[0])))
	return f, err
}

// arguments is the block in which the driver finds the parameters of a launch:
// pointers to words, all pinned for the life of the program.
type arguments struct {
	words    [24]uint64
	pointers [24]uintptr
	pin      runtime.Pinner
}

func newArguments() *arguments {
	a := new(arguments)
	a.pin.Pin(a)
	for i := range a.words {
		a.pointers[i] = uintptr(unsafe.Pointer(&a.words[i]))
	}
	return a
}

func (d *driver) Launch(f gpu.Func, grid, block uint32, s gpu.Stream, args []uint64) error {
	if len(args) > len(d.args.words) {
		panic(fmt.Sprintf("cuda: %d kernel arguments, at most %d", len(args), len(d.args.words)))
	}
	d.mu.Lock() // until the driver has copied the arguments, which it does in the call
	defer d.mu.Unlock()
	copy(d.args.words[:], args)
	return check(d.launch, uintptr(f), uintptr(grid), 1, 1, uintptr(block), 1, 1, 0, uintptr(s), uintptr(unsafe.Pointer(&d.args.pointers[0])), 0)
}

func (d *driver) BeginCapture(s gpu.Stream) error {
	const relaxed = 2 // cuBLAS may do what other modes forbid
	return check(d.beginCapture, uintptr(s), relaxed)
}

func (d *driver) EndCapture(s gpu.Stream) (g gpu.Graph, err error) {
	err = check(d.endCapture, uintptr(s), uintptr(unsafe.Pointer(&g)))
	return g, err
}

func (d *driver) Instantiate(g gpu.Graph) (gpu.Exec, error) {
	return get[gpu.Exec](d.instantiate, uintptr(g), 0)
}
