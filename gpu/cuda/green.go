package cuda

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"

	"placer/gpu"
)

// green are the functions of green contexts, which drivers have from CUDA 12.4
// on; 0 in older ones.
type green struct {
	resource, split, describe, create, stream, destroy uintptr
}

func (g *green) find(library uintptr) {
	for _, s := range []symbol{{&g.resource, "cuDeviceGetDevResource"}, {&g.split, "cuDevSmResourceSplitByCount"}, {&g.describe, "cuDevResourceGenerateDesc"},
		{&g.create, "cuGreenCtxCreate"}, {&g.stream, "cuGreenCtxStreamCreate"}, {&g.destroy, "cuGreenCtxDestroy"}} {
		at, err := purego.Dlsym(library, s.name)
		if err != nil {
			*g = green{}
			return
		}
		*s.at = at
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
func (d *Driver) Partition(dev, parts int) (out []gpu.Part, err error) {
	if d.green.create == 0 {
		return nil, fmt.Errorf("green contexts: the driver has none: %w", gpu.Code(801))
	}
	const kindSM, defaultStream, nonBlocking = 1, 1, 1
	var all [resourceBytes]byte
	if err := check(d.green.resource, uintptr(dev), uintptr(unsafe.Pointer(&all[0])), kindSM); err != nil {
		return nil, fmt.Errorf("cuDeviceGetDevResource: %w", err)
	}
	// The driver rounds the count up to its granularity, after which the last part
	// may be missing: fewer multiprocessors a part then.
	share := int(binary.LittleEndian.Uint32(all[smCountAt:])) / parts
	groups := make([]byte, parts*resourceBytes)
	for ; ; share-- {
		if share < 1 {
			return nil, fmt.Errorf("green contexts: device %d cannot be split into %d parts: %w", dev, parts, gpu.InvalidValue)
		}
		n := uint32(parts)
		err := check(d.green.split, uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&n)), uintptr(unsafe.Pointer(&all[0])), 0, 0, uintptr(share))
		if err == nil && int(n) == parts {
			break
		}
	}
	defer func() {
		if err != nil {
			for _, p := range out {
				p.Close()
			}
			out = nil
		}
	}()
	for i := range parts {
		var desc, ctx uintptr
		if err := check(d.green.describe, uintptr(unsafe.Pointer(&desc)), uintptr(unsafe.Pointer(&groups[i*resourceBytes])), 1); err != nil {
			return out, fmt.Errorf("cuDevResourceGenerateDesc: %w", err)
		}
		if err := check(d.green.create, uintptr(unsafe.Pointer(&ctx)), desc, uintptr(dev), defaultStream); err != nil {
			return out, fmt.Errorf("cuGreenCtxCreate: %w", err)
		}
		out = append(out, gpu.Part{
			SMs: int(binary.LittleEndian.Uint32(groups[i*resourceBytes+smCountAt:])),
			NewStream: func(priority int) (gpu.Stream, error) {
				var s gpu.Stream
				err := check(d.green.stream, uintptr(unsafe.Pointer(&s)), ctx, nonBlocking, uintptr(int32(priority)))
				return s, err
			},
			Close: func() error { return check(d.green.destroy, ctx) },
		})
	}
	return out, nil
}
