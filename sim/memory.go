package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"placer/graph"
	"placer/units"
)

// Holding is a stretch of memory that a device holds for some time.
type Holding struct {
	What   string // "resident", "workspace", "output" or "received"
	Op     graph.OpID
	Name   string         // of the op
	Tensor graph.TensorID // NoTensor for resident memory and workspace
	Bytes  units.Bytes
	From   units.Seconds
	Until  units.Seconds // +Inf for resident memory
}

// account lists everything a device holds during a step.
type account []Holding

// accounts returns the account of each device, [D].
func (h *history) accounts() []account {
	acc := make([]account, h.d)
	hold := func(d uint8, x Holding) {
		if x.Bytes > 0 {
			acc[d] = append(acc[d], x)
		}
	}
	until := h.untils()
	for i := range int32(h.n) {
		d := h.device[i]
		start, end := units.Seconds(h.starts[i]), units.Seconds(h.end(i))
		for _, m := range h.members(i) {
			id := graph.OpID(m)
			op := h.g.Op(id)
			hold(d, Holding{"resident", id, op.Name, NoTensor, op.Resident, 0, units.Seconds(inf)})
			hold(d, Holding{"workspace", id, op.Name, NoTensor, op.Workspace, start, end})
			first, last := h.g.Outputs(id)
			for t := first; t < last; t++ {
				x := h.g.Tensor(t)
				if x.Resident || h.layout.keeps(h.kernels.of, i, int32(t)) || h.layout.shares(h.kernels, i, int32(t)) != none {
					continue
				}
				last := end
				if len(h.g.Consumers(t)) > 0 {
					last = max(last, units.Seconds(until.of(h.find(i, int32(t)), d)))
				}
				hold(d, Holding{"output", id, op.Name, t, x.Bytes, start, last})
			}
		}
	}
	for k := range h.transfers {
		x := &h.transfers[k]
		m, p, d := &h.messages[x.message()], h.span(int32(k)).Op, uint8(x.dst())
		hold(d, Holding{"received", p, h.g.Op(p).Name, graph.TensorID(m.tensor), units.Bytes(m.size),
			units.Seconds(x.start), units.Seconds(until.of(x.message(), d))})
	}
	return acc
}

// copyOf is what a message carries, on a device.
type copyOf struct {
	message int32
	device  uint8
}

// untils says when the memory of each message is free again, on each device that has it.
type untils struct {
	at        []uint8   // [M] the device of its producer
	there     []float64 // [M] on that device
	elsewhere map[copyOf]float64
}

func (u *untils) of(m int32, d uint8) float64 {
	if u.at[m] == d {
		return u.there[m]
	}
	return u.elsewhere[copyOf{m, d}]
}

func (u *untils) extend(m int32, d uint8, at float64) {
	if u.at[m] == d {
		u.there[m] = max(u.there[m], at)
		return
	}
	c := copyOf{m, d}
	u.elsewhere[c] = max(u.elsewhere[c], at)
}

// untils returns when the memory of each message is free again: after its last reader
// on the device, its transfers from there, and the same of all views that are in it.
func (h *history) untils() *untils {
	n := len(h.messages)
	until := &untils{at: make([]uint8, n), there: make([]float64, n), elsewhere: make(map[copyOf]float64, len(h.transfers))}
	for m := range h.messages {
		until.at[m] = h.device[h.producer[m]]
	}
	type view struct{ message, of int32 }
	var views []view
	for m := range h.messages {
		x := &h.messages[m]
		for _, v := range h.use[x.first:x.end] {
			until.extend(int32(m), h.device[v], h.end(v))
		}
		if i := h.producer[m]; x.tensor != none && !h.layout.keeps(h.kernels.of, i, x.tensor) {
			if y := h.layout.shares(h.kernels, i, x.tensor); y != none {
				views = append(views, view{int32(m), h.find(h.kernels.of[h.layout.producer[y]], y)})
			}
		}
	}
	for k := range h.transfers {
		x := &h.transfers[k]
		until.extend(x.message(), until.at[x.message()], x.end)
	}
	// Views of views come first: those of one kernel have rising numbers.
	slices.SortFunc(views, func(a, b view) int {
		return cmp.Or(cmp.Compare(h.starts[h.producer[b.message]], h.starts[h.producer[a.message]]), cmp.Compare(b.message, a.message))
	})
	for _, v := range views {
		d := until.at[v.message]
		until.extend(v.of, d, until.of(v.message, d))
	}
	return until
}

// samples returns the bytes held after every instant at which they change, the
// peak and the first instant of the peak.
func (a account) samples() (samples []Sample, peak units.Bytes, at units.Seconds) {
	changes := make([]Sample, 0, 2*len(a))
	for _, x := range a {
		changes = append(changes, Sample{x.From, x.Bytes})
		if float64(x.Until) < inf {
			changes = append(changes, Sample{x.Until, -x.Bytes})
		}
	}
	slices.SortFunc(changes, func(a, b Sample) int { return cmp.Compare(a.At, b.At) })
	var bytes units.Bytes
	for k, c := range changes {
		bytes += c.Bytes
		if k+1 < len(changes) && changes[k+1].At == c.At {
			continue
		}
		samples = append(samples, Sample{c.At, bytes})
		if bytes > peak {
			peak, at = bytes, c.At
		}
	}
	return samples, peak, at
}

// largest returns the k largest things held at an instant.
func (a account) largest(k int, at units.Seconds) []Holding {
	var held account
	for _, x := range a {
		if x.From <= at && at < x.Until {
			held = append(held, x)
		}
	}
	slices.SortStableFunc(held, func(a, b Holding) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return held[:min(k, len(held))]
}

// Infeasible says that a plan needs more memory than a device has. Where several
// devices overflow it names the one that lacks most.
type Infeasible struct {
	Device     int
	DeviceName string
	Need, Have units.Bytes
	At         units.Seconds // when the peak is first reached
	Largest    []Holding     // the largest things on the device then, descending
}

func (e *Infeasible) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "infeasible: %s needs %v at %v, it has %v", e.DeviceName, e.Need, e.At, e.Have)
	for k, x := range e.Largest {
		sep := ", "
		if k == 0 {
			sep = "; largest: "
		}
		fmt.Fprintf(&b, "%s%s of %s (%v)", sep, x.What, x.Name, x.Bytes)
	}
	return b.String()
}

// listed is how many holdings an Infeasible names.
const listed = 5

func (h *history) infeasible(acc []account) error {
	var worst *Infeasible
	for d, a := range acc {
		_, peak, at := a.samples()
		have := h.m.Devices[d].Memory
		if peak <= have || worst != nil && peak-have <= worst.Need-worst.Have {
			continue
		}
		worst = &Infeasible{Device: d, DeviceName: h.m.Devices[d].Name, Need: peak, Have: have, At: at}
	}
	if worst == nil {
		return nil
	}
	worst.Largest = acc[worst.Device].largest(listed, worst.At)
	return worst
}
