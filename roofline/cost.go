package roofline

import "placer/units"

// Bound says what an op's time consists of mostly.
type Bound uint8

// Bounds.
const (
	ByCompute Bound = iota
	ByMemory
	ByLaunch
)

var boundNames = [...]string{"compute", "memory", "launch"}

func (b Bound) String() string { return boundNames[b] }

// Cost is the time of one op on one device, in its parts. Arithmetic and memory
// traffic overlap; the launch does not.
type Cost struct {
	Compute units.Seconds // operations over the achieved rate
	Memory  units.Seconds // bytes over the achieved bandwidth
	// Launch is what passes whatever the size: the gap before the kernel and the
	// filling and draining of the device.
	Launch units.Seconds
}

// Seconds returns the time the op occupies its device.
func (c Cost) Seconds() units.Seconds { return max(c.Compute, c.Memory) + c.Launch }

// Bound returns the largest part.
func (c Cost) Bound() Bound {
	switch {
	case c.Launch > c.Compute && c.Launch > c.Memory:
		return ByLaunch
	case c.Memory > c.Compute:
		return ByMemory
	}
	return ByCompute
}
