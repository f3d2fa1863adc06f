package kernel

import (
	_ "embed"
	"fmt"

	"placer/hw/gpu"
)

//go:embed kernels.ptx
var ptx string

// PTX returns the text of the kernels.
func PTX() string { return ptx }

// Set is the kernels on one device.
type Set struct {
	module              gpu.Module
	fill, rw, spin, nop gpu.Func
	sms                 int
	args                [5]uint64 // so that a launch allocates nothing
}

// Load compiles the kernels for device dev, whose context is current.
func Load(d gpu.Driver, dev int) (*Set, error) {
	sms, err := d.Attribute(dev, gpu.SMCount)
	if err != nil {
		return nil, fmt.Errorf("device %d: %w", dev, err)
	}
	s := &Set{sms: sms}
	if s.module, err = d.LoadPTX(ptx); err != nil {
		return nil, fmt.Errorf("device %d: kernels: %w", dev, err)
	}
	for name, f := range map[string]*gpu.Func{"fill": &s.fill, "rw": &s.rw, "spin": &s.spin, "nop": &s.nop} {
		if *f, err = d.Func(s.module, name); err != nil {
			return nil, fmt.Errorf("device %d: kernel %s: %w", dev, name, err)
		}
	}
	return s, nil
}

const block = 256

// resident is how many blocks a multiprocessor holds at a time: rw takes 40
// registers a thread, of 65,536. More would be a second wave that is nearly empty.
const resident = 6

// grid gives every multiprocessor the blocks that it holds, but no thread without
// work.
func (s *Set) grid(words uint64) uint32 {
	return uint32(max(1, min(uint64(resident*s.sms), (words+block-1)/block)))
}

// Fill writes random values of type t, between 1/2 and 1 in size, into bytes of
// p, a multiple of 4. Zeros would make products cheaper than real data does.
func (s *Set) Fill(d gpu.Driver, st gpu.Stream, p gpu.Ptr, bytes uint64, t gpu.DType, seed uint32) error {
	keep, set := Masks(t)
	s.args = [5]uint64{uint64(p), bytes / 4, uint64(seed), uint64(keep), uint64(set)}
	return d.Launch(s.fill, s.grid(bytes/4), block, st, s.args[:5])
}

// Masks returns the bits of a 32-bit word that are random in values of type t, and
// those that are set.
func Masks(t gpu.DType) (keep, set uint32) {
	switch t {
	case gpu.F16:
		return 0x83ff83ff, 0x38003800
	case gpu.BF16:
		return 0x807f807f, 0x3f003f00
	case gpu.F64:
		return 0x800fffff, 0x3fe00000
	case gpu.F8:
		return 0x87878787, 0x30303030
	}
	return 0x807fffff, 0x3f000000
}

// Word is the 32-bit word that Fill writes at index i.
func Word(i uint64, t gpu.DType, seed uint32) uint32 {
	keep, set := Masks(t)
	x := uint32(i) + seed
	x ^= x >> 16
	x *= 0x7feb352d
	x ^= x >> 15
	x *= 0x846ca68b
	x ^= x >> 16
	return x&keep | set
}

// Stream reads in bytes at from and writes out bytes at to, both multiples of 16
// at such addresses, and does 8*fma operations for every 16 bytes read.
func (s *Set) Stream(d gpu.Driver, st gpu.Stream, from gpu.Ptr, in uint64, to gpu.Ptr, out, fma uint64) error {
	s.args = [5]uint64{uint64(from), in / 16, uint64(to), out / 16, fma}
	return d.Launch(s.rw, s.grid(max(in, out)/16), block, st, s.args[:5])
}

// Spin keeps one multiprocessor's slot for ns nanoseconds.
func (s *Set) Spin(d gpu.Driver, st gpu.Stream, ns uint64) error {
	s.args[0] = ns
	return d.Launch(s.spin, 1, 1, st, s.args[:1])
}

// Nop does nothing.
func (s *Set) Nop(d gpu.Driver, st gpu.Stream) error { return d.Launch(s.nop, 1, 1, st, nil) }
