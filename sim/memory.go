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
	lastUse := func(m *message, d uint8) (at float64) {
		for _, v := range h.use[m.first:m.end] {
			if h.device[v] == d {
				at = max(at, h.end(v))
			}
		}
		return at
	}
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
				if x.Resident || h.layout.keeps(h.kernels, i, int32(t)) {
					continue
				}
				until := end
				if len(h.g.Consumers(t)) > 0 {
					m := h.find(i, int32(t))
					until = max(until, units.Seconds(lastUse(&h.messages[m], d)))
					for k := h.firstOf[m]; k != none && int(k) < len(h.transfers) && h.transfers[k].message() == m; k++ {
						until = max(until, units.Seconds(h.transfers[k].end))
					}
				}
				hold(d, Holding{"output", id, op.Name, t, x.Bytes, start, until})
			}
		}
	}
	for k := range h.transfers {
		x := &h.transfers[k]
		m, p := &h.messages[x.message()], h.span(int32(k)).Op
		hold(uint8(x.dst()), Holding{"received", p, h.g.Op(p).Name, graph.TensorID(m.tensor), units.Bytes(m.size),
			units.Seconds(x.start), units.Seconds(lastUse(m, uint8(x.dst())))})
	}
	return acc
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
