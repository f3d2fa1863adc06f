package device

import (
	"errors"
	"fmt"
	"unsafe"

	"placer/hw/gpu"
)

// alloc returns device memory; it is 0 after a failure.
func (d *Device) alloc(bytes int) gpu.Ptr {
	if d.err != nil {
		return 0
	}
	p, err := d.driver.Alloc(uint64(max(bytes, 4)))
	if errors.Is(err, gpu.OutOfMemory) {
		free, total, _ := d.driver.MemInfo() // without them the error says enough
		err = fmt.Errorf("%d MB of %d free: %w", free>>20, total>>20, err)
	}
	if err != nil {
		d.fail(fmt.Errorf("memory of %d bytes: %w", bytes, err))
	}
	return p
}

func (d *Device) free(p gpu.Ptr) {
	if p != 0 {
		d.fail(d.driver.Free(p))
	}
}

// grow makes r hold bytes; what it held is lost if it was smaller.
func (d *Device) grow(r *room, bytes int) gpu.Ptr {
	if bytes > r.size {
		d.sync()
		d.free(r.ptr)
		*r = room{d.alloc(bytes), bytes}
		if d.err != nil {
			*r = room{}
		}
	}
	return r.ptr
}

// scratch returns memory that the operation at work may use.
func (d *Device) scratch(key, bytes int) gpu.Ptr { return d.grow(&d.rooms[key], bytes) }

// sync waits for the stream, after a failure too: copies may be under way, and
// what they read or write is free for others afterwards.
func (d *Device) sync() {
	d.fail(d.driver.SyncStream(d.stream))
	for _, a := range d.arriving {
		if d.err == nil {
			copy(a.to, a.from)
		}
	}
	d.used, d.arriving = 0, d.arriving[:0]
}

// stage returns n pinned bytes, the caller's until the next stage or sync that
// finds the stream past them.
func (d *Device) stage(n int) []byte {
	if d.used+n > len(d.pinned) {
		d.sync()
	}
	if n > len(d.pinned) && d.err == nil {
		if d.pinned != nil {
			d.fail(d.driver.HostFree(d.pinned))
		}
		b, err := d.driver.HostAlloc(max(n+n/4, 4<<20))
		d.fail(err)
		d.pinned = b
	}
	if d.err != nil {
		return nil
	}
	b := d.pinned[d.used : d.used+n : d.used+n]
	d.used += (n + 255) / 256 * 256
	d.used = min(d.used, len(d.pinned))
	return b
}

// view shows numbers as bytes.
func view[T float32 | float64 | int32](x []T) []byte {
	var t T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(t)))
}

// upload copies x to device memory.
func upload[T float32 | float64 | int32](d *Device, dst gpu.Ptr, x []T) {
	if len(x) == 0 {
		return
	}
	b := d.stage(len(view(x)))
	if d.err == nil {
		copy(b, view(x))
		d.fail(d.driver.HtoD(dst, b, d.stream))
	}
}

// arrival is a copy from pinned memory to where the numbers are wanted.
type arrival struct{ to, from []byte }

// download copies device memory into x, which holds it after the next sync.
func download[T float32 | float64 | int32](d *Device, x []T, src gpu.Ptr) {
	if len(x) == 0 {
		return
	}
	b := d.stage(len(view(x)))
	if d.err == nil {
		d.fail(d.driver.DtoH(b, src, d.stream))
		d.arriving = append(d.arriving, arrival{view(x), b})
	}
}
