package device

import (
	"fmt"
	"runtime"
	"sync"

	"placer/hw/gpu"
	"placer/nn"
)

// Device is one GPU. It implements nn.Device and is safe for concurrent use; one
// call runs at a time.
type Device struct {
	mu      sync.Mutex
	driver  gpu.Driver
	blas    gpu.BLAS
	ordinal int
	name    string
	sms     int
	context gpu.Context
	stream  gpu.Stream
	handle  gpu.Handle
	kernels [numKernels]gpu.Func
	args    [24]uint64 // so that a launch allocates nothing

	pinned   []byte // for copies; used counts the bytes in flight
	used     int
	arriving []arrival
	rooms    [numKeys]room
	params   map[*nn.Param]*resident
	err      error // the first of the call under way
}

var _ nn.Device = (*Device)(nil)

// room is device memory that grows.
type room struct {
	ptr  gpu.Ptr
	size int
}

// Scratch keys. What a room holds is lost when the operation that asked for it
// ends.
const (
	keySum      = iota             // colsum and dsum, by level, and what dsum comes to
	keyGrad     = iota + sumLevels // a gradient before its activation, or of a normalised row
	keyHidden                      // before the maximum; gradient of the projections
	keyMemory                      // gradient of the memory's keys and values
	keyProb                        // attention's probabilities
	keyProbGrad                    // and their gradient
	keySquares
	keyActions // samples of the objective
	keyLogProb
	keyAdvantage
	keyStats
	numKeys
)

// Open makes a device of GPU ordinal.
func Open(driver gpu.Driver, blas gpu.BLAS, ordinal int) (*Device, error) {
	d := &Device{driver: driver, blas: blas, ordinal: ordinal, params: map[*nn.Param]*resident{}}
	if err := d.open(); err != nil {
		if d.context != 0 {
			d.Close() // the error that counts came before
		}
		return nil, fmt.Errorf("policy on device %d: %w", ordinal, err)
	}
	return d, nil
}

func (d *Device) open() (err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if d.name, err = d.driver.Name(d.ordinal); err != nil {
		return err
	}
	if d.sms, err = d.driver.Attribute(d.ordinal, gpu.SMCount); err != nil {
		return err
	}
	if d.context, err = d.driver.Retain(d.ordinal); err != nil {
		return err
	}
	if err = d.driver.SetCurrent(d.context); err != nil {
		return err
	}
	if d.stream, err = d.driver.NewStream(0); err != nil {
		return err
	}
	if d.handle, err = d.blas.NewHandle(); err != nil {
		return err
	}
	if err = d.blas.SetStream(d.handle, d.stream); err != nil {
		return err
	}
	return d.load()
}

// Name is as nn.Device says.
func (d *Device) Name() string { return d.name }

// Close frees what the device holds. Engines must be closed before.
func (d *Device) Close() (err error) {
	defer d.leave(&err)
	d.enter()
	d.sync()
	for p := range d.params {
		d.release(p)
	}
	for i := range d.rooms {
		d.free(d.rooms[i].ptr)
	}
	if d.pinned != nil {
		d.fail(d.driver.HostFree(d.pinned))
	}
	if d.handle != 0 {
		d.fail(d.blas.DestroyHandle(d.handle))
	}
	if d.stream != 0 {
		d.fail(d.driver.DestroyStream(d.stream))
	}
	d.fail(d.driver.Release(d.ordinal))
	return nil
}

// enter begins a call: contexts are current to threads, so the goroutine stays on
// one until leave.
func (d *Device) enter() {
	d.mu.Lock()
	runtime.LockOSThread()
	d.err = nil
	d.fail(d.driver.SetCurrent(d.context))
}

// leave ends the call that enter began. Once something has failed, the rest of a
// call does nothing, and leave reports it.
func (d *Device) leave(err *error) {
	if *err == nil && d.err != nil {
		*err = fmt.Errorf("policy on device %d: %w", d.ordinal, d.err)
	}
	runtime.UnlockOSThread()
	d.mu.Unlock()
}

func (d *Device) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// multiply runs a product of f32.
func (d *Device) multiply(p gpu.Product) {
	if d.err == nil {
		p.Type = gpu.F32
		d.fail(d.blas.Multiply(d.handle, &p))
	}
}
