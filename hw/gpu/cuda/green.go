package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"placer/hw/gpu"
	"placer/internal/dynlib"
)

// green are the functions of green contexts, which drivers have from CUDA 12.4
// on; 0 in older ones. stream came with CUDA 12.5.
type green struct {
	resource, split, describe, create, destroy, context, push, pop uintptr
	stream                                                         uintptr
}

func (g *green) find(library uintptr) {
	err := dynlib.Find(library, dynlib.Symbols{"cuDeviceGetDevResource": &g.resource, "cuDevSmResourceSplitByCount": &g.split, "cuDevResourceGenerateDesc": &g.describe,
		"cuGreenCtxCreate": &g.create, "cuGreenCtxDestroy": &g.destroy,
		"cuCtxFromGreenCtx": &g.context, "cuCtxPushCurrent_v2": &g.push, "cuCtxPopCurrent_v2": &g.pop})
	if err != nil {
		*g = green{}
		return
	}
	if at, err := dynlib.LookUp(library, "cuGreenCtxStreamCreate"); err == nil {
		g.stream = at
	}
}

// CUdevResource is 144 bytes; the number of multiprocessors stands behind its
// type and padding.
const (
	resourceBytes = 144
	smCountAt     = 96
)

// Partition splits the multiprocessors of dev, whose primary context is current,
// into equal parts. The driver rounds a part to what its hardware can separate, so
// that some multiprocessors may be left out.
func (d *driver) Partition(dev, parts int) (out []gpu.Part, err error) {
	if d.green.create == 0 {
		return nil, fmt.Errorf("green contexts: the driver has none, those of CUDA 12.4 have: %w", gpu.NotSupported)
	}
	const kindSM, defaultStream = 1, 1
	var all [resourceBytes]byte
	if err := check(d.green.resource, uintptr(dev), uintptr(unsafe.Pointer(&all[0])), kindSM); err != nil {
		return nil, fmt.Errorf("cuDeviceGetDevResource: %w", err)
	}
	// The driver rounds the count up to its granularity, after which the last part
	// may be missing: fewer multiprocessors a part then.
	share := int(binary.LittleEndian.Uint32(all[smCountAt:])) / parts
	groups := make([]byte, parts*resourceBytes)
	why := error(gpu.InvalidValue)
	for ; ; share-- {
		if share < 1 {
			return nil, fmt.Errorf("green contexts: device %d cannot be split into %d parts: %w", dev, parts, why)
		}
		n := uint32(parts)
		err := check(d.green.split, uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(&all[0])), 0, 0, uintptr(share))
		if err == nil && int(n) == parts {
			break
		}
		if err != nil {
			why = err
		}
	}
	defer func() {
		if err != nil {
			for _, p := range out {
				_ = p.Close()
			}
			out = nil
		}
	}()
	for i := range parts {
		var desc uintptr
		if err := check(d.green.describe, uintptr(unsafe.Pointer(&desc)), uintptr(unsafe.Pointer(&groups[i*resourceBytes])), 1); err != nil {
			return out, fmt.Errorf("cuDevResourceGenerateDesc: %w", err)
		}
		ctx, err := get[uintptr](d.green.create, desc, uintptr(dev), defaultStream)
		if err != nil {
			return out, fmt.Errorf("cuGreenCtxCreate: %w", err)
		}
		out = append(out, gpu.Part{
			SMs:       int(binary.LittleEndian.Uint32(groups[i*resourceBytes+smCountAt:])),
			NewStream: func(priority int) (gpu.Stream, error) { return d.newStreamOf(ctx, priority) },
			Close:     func() error { return check(d.green.destroy, ctx) },
		})
	}
	return out, nil
}

// newStreamOf returns a stream of a green context.
func (d *driver) newStreamOf(green uintptr, priority int) (s gpu.Stream, err error) {
	if d.green.stream != 0 {
		return get[gpu.Stream](d.green.stream, green, nonBlocking, uintptr(int32(priority)))
	}
	// CUDA 12.4: the stream belongs to the context that is current.
	ctx, err := get[uintptr](d.green.context, green)
	if err != nil {
		return 0, fmt.Errorf("cuCtxFromGreenCtx: %w", err)
	}
	if err := check(d.green.push, ctx); err != nil {
		return 0, fmt.Errorf("cuCtxPushCurrent: %w", err)
	}
	s, err = d.NewStream(priority)
	_, popped := get[uintptr](d.green.pop)
	return s, errors.Join(err, popped)
}
