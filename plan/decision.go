package plan

import "slices"

// Decision is an answer to the tasks for every op of a graph. Structs that carry one
// embed it and say what nil means there.
type Decision struct {
	// Device is the device of each op, [N].
	Device []uint8
	// Priority is a permutation of 0..N-1: among the ready ops of a device the
	// lowest value runs first. Nil is FIFO: the op ready first, then the lower id.
	Priority []int32
	// Fusion is the fusion priority of each op, [N]: ops are visited by falling
	// priority and fused with the ops that read them where that is legal; those of
	// priority 0 are not visited (package graph/fuse). Nil fuses nothing.
	Fusion []uint8
}

// Clone returns a copy that shares no memory with d.
func (d Decision) Clone() Decision {
	return Decision{Device: slices.Clone(d.Device), Priority: slices.Clone(d.Priority), Fusion: slices.Clone(d.Fusion)}
}

// Or returns d with what is nil taken from e.
func (d Decision) Or(e Decision) Decision {
	if d.Device == nil {
		d.Device = e.Device
	}
	if d.Priority == nil {
		d.Priority = e.Priority
	}
	if d.Fusion == nil {
		d.Fusion = e.Fusion
	}
	return d
}

// DevicesOf returns how many devices a placement uses.
func DevicesOf(device []uint8) (n int) {
	var used [256]bool
	for _, d := range device {
		if !used[d] {
			used[d] = true
			n++
		}
	}
	return n
}
