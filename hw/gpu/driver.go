package gpu

// Handles of the driver, opaque words.
type (
	Context uint64
	Stream  uint64
	Event   uint64
	Module  uint64
	Func    uint64
	Graph   uint64
	Exec    uint64 // an instantiated graph
	Ptr     uint64 // device memory
)

// Driver is what the project asks of the CUDA driver. Methods that touch
// streams, events, memory or kernels need a current context. Errors of the
// driver are of type Code, perhaps wrapped.
type Driver interface {
	// Version returns the CUDA version of the driver, 12040 for 12.4.
	Version() int
	// Count returns the number of devices; their ordinals are 0..Count-1.
	Count() (int, error)
	Name(dev int) (string, error)
	// UUID identifies the device in NVML too, whose order may differ.
	UUID(dev int) ([16]byte, error)
	PCIBusID(dev int) (string, error)
	TotalMem(dev int) (uint64, error)
	Attribute(dev int, a Attribute) (int, error)
	// CanPeer reports whether from reaches the memory of to directly. Where it
	// does not, Peer still works: the driver goes through the host.
	CanPeer(from, to int) (bool, error)

	// Retain returns the device's primary context; Release undoes it.
	Retain(dev int) (Context, error)
	Release(dev int) error
	SetCurrent(Context) error
	// EnablePeer gives the current context direct access to the memory of another.
	EnablePeer(Context) error
	// MemInfo returns the free and the total bytes of the current device.
	MemInfo() (free, total uint64, err error)

	// NewStream makes a stream that does not wait for the legacy stream. Lower
	// priorities go first.
	NewStream(priority int) (Stream, error)
	DestroyStream(Stream) error
	SyncStream(Stream) error
	Wait(Stream, Event) error
	NewEvent(timing bool) (Event, error)
	DestroyEvent(Event) error
	Record(Event, Stream) error
	SyncEvent(Event) error
	// ElapsedMS returns the milliseconds from a to b, both recorded with timing in
	// one context.
	ElapsedMS(a, b Event) (float32, error)

	// Alloc returns device memory aligned to 256 bytes at least.
	Alloc(bytes uint64) (Ptr, error)
	Free(Ptr) error
	// HostAlloc returns pinned memory of the host.
	HostAlloc(bytes int) ([]byte, error)
	HostFree([]byte) error
	// The copies are asynchronous. Host memory must be pinned, and stay until the
	// stream is past the copy.
	HtoD(dst Ptr, src []byte, s Stream) error
	DtoH(dst []byte, src Ptr, s Stream) error
	DtoD(dst, src Ptr, bytes uint64, s Stream) error
	Peer(dst Ptr, dstContext Context, src Ptr, srcContext Context, bytes uint64, s Stream) error

	// LoadPTX compiles PTX for the current device.
	LoadPTX(text string) (Module, error)
	Func(m Module, name string) (Func, error)
	// Launch runs f on grid blocks of block threads. Every parameter of the kernel
	// is a 64-bit word of args, which Launch does not keep.
	Launch(f Func, grid, block uint32, s Stream, args []uint64) error

	// BeginCapture records the work on s, and on streams that wait for it, instead
	// of running it; EndCapture returns it as a graph.
	BeginCapture(Stream) error
	EndCapture(Stream) (Graph, error)
	Instantiate(Graph) (Exec, error)
	LaunchExec(Exec, Stream) error
	DestroyGraph(Graph) error
	DestroyExec(Exec) error
}

// Attribute is a property of a device (CUdevice_attribute).
type Attribute int

// Attributes in use.
const (
	ClockKHz       Attribute = 13
	SMCount        Attribute = 16
	MemoryClockKHz Attribute = 36
	BusWidthBits   Attribute = 37
	L2Bytes        Attribute = 38
	AsyncEngines   Attribute = 40
	Major          Attribute = 75 // compute capability
	Minor          Attribute = 76
)

// Partitioner is implemented by drivers that can divide the multiprocessors of a
// device among streams (green contexts, CUDA 12.4 and later).
type Partitioner interface {
	// Partition divides device dev into parts of equal numbers of
	// multiprocessors. The device's primary context must be current.
	Partition(dev, parts int) ([]Part, error)
}

// Part is a share of a device.
type Part struct {
	SMs int
	// NewStream returns a stream whose kernels run on this share alone.
	NewStream func(priority int) (Stream, error)
	// Close gives the share back, once its streams are destroyed.
	Close func() error
}
