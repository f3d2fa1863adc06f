package measure

import (
	"errors"
	"maps"
	"slices"

	"placer/hw/gpu"
	"placer/hw/gpu/kernel"
)

// Warm keeps contexts and kernels between runs, which otherwise make and load
// their own each time. It serves one run at a time.
type Warm struct {
	d    gpu.Driver
	sets map[int]*kernel.Set // by GPU
}

// NewWarm returns a Warm for runs on d.
func NewWarm(d gpu.Driver) *Warm { return &Warm{d: d, sets: map[int]*kernel.Set{}} }

// kernels returns the kernels of a GPU, whose context is current.
func (w *Warm) kernels(ordinal int) (*kernel.Set, error) {
	if k, ok := w.sets[ordinal]; ok {
		return k, nil
	}
	if _, err := w.d.Retain(ordinal); err != nil {
		return nil, err
	}
	k, err := kernel.Load(w.d, ordinal)
	if err != nil {
		w.d.Release(ordinal)
		return nil, err
	}
	w.sets[ordinal] = k
	return k, nil
}

// PartSMs returns how many multiprocessors each of k parts of a GPU gets.
func PartSMs(d gpu.Driver, ordinal, k int) (sms int, err error) {
	p, ok := d.(gpu.Partitioner)
	if !ok {
		return 0, errors.New("this driver cannot divide multiprocessors")
	}
	err = gpu.Locked(func() error {
		if _, err := gpu.Enter(d, ordinal); err != nil {
			return err
		}
		defer d.Release(ordinal)
		parts, err := p.Partition(ordinal, k)
		if err != nil {
			return err
		}
		sms = parts[0].SMs
		for _, x := range parts {
			if err := x.Close(); err != nil {
				return err
			}
		}
		return nil
	})
	return sms, err
}

// Close gives the contexts back.
func (w *Warm) Close() {
	for _, ordinal := range slices.Sorted(maps.Keys(w.sets)) {
		w.d.Release(ordinal)
	}
	clear(w.sets)
}
