package hw

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Hash returns the hex SHA-256 of all that a prediction depends on: devices
// with their names and figures, links, routes. The machine's name, its note and
// the sources do not count, nor what links are of (Medium), which plans know nothing of: equal
// hashes mean equal predictions of plans.
func (m *Machine) Hash() string {
	d := digest{sha256.New()}
	d.text("placer machine 1")
	d.number(float64(len(m.Devices)))
	for i := range m.Devices {
		v := &m.Devices[i]
		d.text(v.Name)
		d.text(v.Model)
		d.text(string(v.Kind))
		d.text(v.Arch)
		for _, x := range []float64{float64(v.Memory), float64(v.MemoryBandwidth), float64(v.Launch), float64(v.SMs), float64(v.L2), float64(len(v.Peak))} {
			d.number(x)
		}
		for _, k := range slices.Sorted(maps.Keys(v.Peak)) {
			d.text(k)
			d.number(float64(v.Peak[k]))
		}
		if v.GraphLaunch > 0 {
			d.text("graph launch")
			d.number(float64(v.GraphLaunch))
		}
		if v.SharedMemoryBandwidth > 0 {
			d.text("shared memory bandwidth")
			d.number(float64(v.SharedMemoryBandwidth))
		}
		if v.Calibration != nil {
			v.Calibration.hash(d)
		}
	}
	d.number(float64(len(m.Links)))
	for _, l := range m.Links {
		d.text(l.Name)
		d.number(float64(l.Bandwidth))
		d.number(float64(l.Latency))
		l.EndCosts.hash(d)
	}
	for _, r := range m.Routes {
		d.number(float64(len(r)))
		for _, l := range r {
			d.number(float64(l))
		}
	}
	return hex.EncodeToString(d.Sum(nil))
}

// digest hashes fields each behind its length, so that no two lists of fields
// read the same.
type digest struct{ hash.Hash }

func (d digest) text(s string) {
	d.Write([]byte(strconv.Itoa(len(s)) + ":" + s))
}

func (d digest) number(x float64) {
	d.text(strconv.FormatUint(math.Float64bits(x), 16))
}
