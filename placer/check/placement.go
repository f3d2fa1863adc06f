package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"placer/graph"
	"placer/hw"
	"placer/internal/words"
	"placer/plan"
)

// Placement is what a file says of a graph on a machine, with what is wrong in saying so.
type Placement struct {
	plan.Decision
	// Order is the static order of each device, [D]; nil where the runtime chooses among
	// ready ops.
	Order    [][]graph.OpID
	Findings []Finding
}

// none marks an op without a device.
const none = 0xff

// FromPlan returns the placement of a plan file for g, the graph with the plan's changes:
// devices are found by name.
func FromPlan(f *plan.File, g *graph.Graph, m *hw.Machine) (*Placement, error) {
	hash := f.GraphHash
	if !f.Changes.None() {
		hash = f.ChangedHash
	}
	if hash != g.Hash() {
		return nil, f.OtherGraph(g)
	}
	if len(f.Device) != g.NumOps() {
		return nil, fmt.Errorf("plan places %s, graph %s has %d", words.Count(len(f.Device), "op", "ops"), g.Name(), g.NumOps())
	}
	p := &Placement{Decision: plan.Decision{Device: make([]uint8, len(f.Device)), Priority: f.Priority, Fusion: f.Fusion}}
	for i, d := range f.Device {
		p.Device[i] = none
		if k := device(m, f.Devices[d]); k >= 0 {
			p.Device[i] = uint8(k)
			continue
		}
		p.lacks(m, f.Devices[d], g.Op(graph.OpID(i)).Name)
	}
	return p, nil
}

// device returns the device of that name, or -1.
func device(m *hw.Machine, name string) int {
	return slices.IndexFunc(m.Devices, func(d hw.Device) bool { return d.Name == name })
}

// lacks counts an op on a device that m does not have, in one finding a device.
func (p *Placement) lacks(m *hw.Machine, name, op string) {
	k := slices.IndexFunc(p.Findings, func(f Finding) bool { return f.Rule == UnknownDevice && f.Device == name })
	if k < 0 {
		k = len(p.Findings)
		p.Findings = append(p.Findings, Finding{Rule: UnknownDevice, Severity: Error, Op: op, Device: name, Fix: "name one of " + names(m)})
	}
	f := &p.Findings[k]
	f.Ops++
	f.Message = fmt.Sprintf("%s on %q, which machine %s lacks", firstOf(f, "is", "are"), name, m.Name)
}

// firstOf names the first of the ops of f, with a verb for one or many: "op conv1 is",
// "3 ops, conv1 first, are".
func firstOf(f *Finding, is, are string) string {
	if f.Ops == 1 {
		return "op " + f.Op + " " + is
	}
	return fmt.Sprintf("%d ops, %s first, %s", f.Ops, f.Op, are)
}

func names(m *hw.Machine) string {
	var all []string
	for i := range m.Devices {
		all = append(all, m.Devices[i].Name)
	}
	return strings.Join(all, ", ")
}

// Entry is a line of a device map: everything below a module's path or an op's name is on
// a device.
type Entry struct{ Prefix, Device string }

// FromMap returns the placement of a device map. An op is placed by the longest entry
// that its module, or else its name, lies below; without one, like what it must share a
// device with, or like the op whose gradient it is; what is left by the entry "", or, if
// there is none, like what makes its inputs, or reads it. The device of an entry is a name of the machine, "cuda:1" or 1 for the
// second GPU, "cpu" for the first CPU.
func FromMap(entries []Entry, g *graph.Graph, m *hw.Machine) *Placement {
	p := &Placement{Decision: plan.Decision{Device: make([]uint8, g.NumOps())}}
	to := make([]int, len(entries))
	for k, e := range entries {
		to[k] = mapped(m, e.Device)
	}
	hits := make([]int, len(entries))
	lost := make([]bool, g.NumOps()) // placed, on a device that there is not
	for i := range p.Device {
		o := g.Op(graph.OpID(i))
		p.Device[i] = none
		k := longest(entries, o)
		if k < 0 || entries[k].Prefix == "" {
			continue
		}
		hits[k]++
		if to[k] >= 0 {
			p.Device[i] = uint8(to[k])
		} else {
			lost[i] = true
			p.lacks(m, entries[k].Device, o.Name)
		}
	}
	for k, n := range hits {
		if n == 0 && entries[k].Prefix != "" && !shadowed(entries, k, g) {
			p.Findings = append(p.Findings, Finding{Rule: UnknownOp, Severity: Error, Op: entries[k].Prefix, Device: entries[k].Device,
				Message: fmt.Sprintf("entry %q stands for no module and no op of graph %s", entries[k].Prefix, g.Name()), Fix: "leave it out, or correct the name"})
		}
	}
	p.inherit(g, false)
	if k := slices.IndexFunc(entries, func(e Entry) bool { return e.Prefix == "" }); k >= 0 {
		for i := range p.Device {
			switch {
			case p.Device[i] != none || lost[i]:
			case to[k] >= 0:
				p.Device[i] = uint8(to[k])
			default:
				lost[i] = true
				p.lacks(m, entries[k].Device, g.Op(graph.OpID(i)).Name)
			}
		}
	}
	p.inherit(g, true)
	p.unplaced(g, lost)
	return p
}

// longest returns the entry that o lies below, the longest of those, or -1.
func longest(entries []Entry, o *graph.Op) int {
	best := -1
	for _, name := range []string{o.Module, o.Name} {
		for k, e := range entries {
			if below(name, e.Prefix) && (best < 0 || len(e.Prefix) > len(entries[best].Prefix)) {
				best = k
			}
		}
		if best >= 0 && entries[best].Prefix != "" {
			return best
		}
	}
	return best
}

// shadowed reports whether ops lie below entry k, all of them below a longer entry too.
func shadowed(entries []Entry, k int, g *graph.Graph) bool {
	for i := range g.NumOps() {
		if o := g.Op(graph.OpID(i)); below(o.Module, entries[k].Prefix) || below(o.Name, entries[k].Prefix) {
			return true
		}
	}
	return false
}

// below reports whether name is path or lies below it.
func below(name, path string) bool {
	rest, ok := strings.CutPrefix(name, path)
	return ok && (path == "" || rest == "" || strings.ContainsRune("./:", rune(rest[0])))
}

// mapped returns the device that an entry names, or -1.
func mapped(m *hw.Machine, name string) int {
	if d := device(m, name); d >= 0 {
		return d
	}
	kind, nth := hw.GPU, name
	if rest, ok := strings.CutPrefix(name, "cuda:"); ok {
		nth = rest
	}
	if name == "cpu" {
		if host := m.Host(); host >= 0 {
			return host
		}
		kind, nth = hw.CPU, "0"
	}
	n, err := strconv.Atoi(nth)
	if err != nil || n < 0 {
		return -1
	}
	for d := range m.Devices {
		if m.Devices[d].Kind == kind {
			if n == 0 {
				return d
			}
			n--
		}
	}
	return -1
}

// inherit places the ops that no entry names by those that one does: like what they
// belong to, and, along the data, like what makes their inputs or reads what they make.
func (p *Placement) inherit(g *graph.Graph, alongData bool) {
	for changed := true; changed; {
		changed = false
		group := map[int32]uint8{}
		for i, d := range p.Device {
			if k := g.Op(graph.OpID(i)).Group; k > 0 && d != none {
				group[k] = d
			}
		}
		put := func(i graph.OpID, d uint8) {
			if p.Device[i] == none && d != none {
				p.Device[i], changed = d, true
			}
		}
		for i := range graph.OpID(len(p.Device)) {
			if p.Device[i] != none {
				continue
			}
			o := g.Op(i)
			if d, ok := group[o.Group]; ok && o.Group > 0 {
				put(i, d)
			}
			if o.Forward != graph.None {
				put(i, p.Device[o.Forward])
			}
			if alongData {
				for q := range g.Predecessors(i) {
					put(i, p.Device[q])
				}
			}
		}
		if changed || !alongData {
			continue
		}
		for i := graph.OpID(len(p.Device)) - 1; i >= 0; i-- {
			first, end := g.Outputs(i)
			for t := first; t < end; t++ {
				for _, r := range g.Consumers(t) {
					put(i, p.Device[r])
				}
			}
		}
	}
}

// unplaced adds a finding of the ops without a device, but for those that are lost.
func (p *Placement) unplaced(g *graph.Graph, lost []bool) {
	f := Finding{Rule: Unplaced, Severity: Error, Fix: "add an entry for it, or one for \"\", which stands for everything"}
	for i, d := range p.Device {
		if d != none || lost[i] {
			continue
		}
		if f.Ops == 0 {
			f.Op = g.Op(graph.OpID(i)).Name
		}
		f.Ops++
	}
	if f.Ops > 0 {
		f.Message = firstOf(&f, "has", "have") + " no device"
		p.Findings = append(p.Findings, f)
	}
}

// Scheduled is an op of a schedule: a static order of ops by name.
type Scheduled struct{ Name, Device string }

// FromSchedule returns the placement of a schedule, whose devices issue their ops in its
// order.
func FromSchedule(ops []Scheduled, g *graph.Graph, m *hw.Machine) *Placement {
	p := &Placement{Decision: plan.Decision{Device: slices.Repeat([]uint8{none}, g.NumOps())}, Order: make([][]graph.OpID, m.NumDevices())}
	index := map[string]graph.OpID{}
	for i := range graph.OpID(g.NumOps()) {
		index[g.Op(i).Name] = i
	}
	lost := make([]bool, g.NumOps())
	for _, x := range ops {
		i, ok := index[x.Name]
		if !ok {
			p.Findings = append(p.Findings, Finding{Rule: UnknownOp, Severity: Error, Op: x.Name, Device: x.Device, Message: fmt.Sprintf("graph %s has no op %s", g.Name(), x.Name), Fix: "leave it out, or correct the name"})
			continue
		}
		d := device(m, x.Device)
		if d < 0 {
			lost[i] = true
			p.lacks(m, x.Device, x.Name)
			continue
		}
		p.Device[i] = uint8(d)
		p.Order[d] = append(p.Order[d], i)
	}
	p.unplaced(g, lost)
	return p
}

// ByPriority gives p the static order of a runtime that runs each device's ops strictly
// by priority, those of equal priority by id.
func (p *Placement) ByPriority(m *hw.Machine) {
	p.Order = make([][]graph.OpID, m.NumDevices())
	for i, d := range p.Device {
		if d != none {
			p.Order[d] = append(p.Order[d], graph.OpID(i))
		}
	}
	if p.Priority == nil {
		return
	}
	for _, ops := range p.Order {
		slices.SortStableFunc(ops, func(a, b graph.OpID) int { return int(p.Priority[a] - p.Priority[b]) })
	}
}
