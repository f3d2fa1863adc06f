package check

import (
	"cmp"
	"fmt"
	"slices"

	"placer/graph"
	"placer/internal/unionfind"
	"placer/internal/words"
	"placer/units"
)

// farWeights finds parameters that no op on their device reads, but for the optimizer's.
func (x *checker) farWeights() {
	type far struct {
		op    graph.OpID
		to    int
		bytes units.Bytes
	}
	var all []far
	for i := range graph.OpID(x.g.NumOps()) {
		if x.g.Op(i).Resident == 0 || x.g.Op(i).Kind.Class() != graph.ClassVariable {
			continue
		}
		readers, here := make([]int, x.Machine.NumDevices()), 0
		x.readers(i, func(r graph.OpID) {
			if d := int(x.now.Device[r]); d == int(x.now.Device[i]) {
				here++
			} else {
				readers[d]++
			}
		})
		to := 0
		for d, n := range readers {
			if n > readers[to] {
				to = d
			}
		}
		if here == 0 && readers[to] > 0 {
			all = append(all, far{i, to, x.g.Op(i).Resident})
		}
	}
	slices.SortStableFunc(all, func(a, b far) int { return cmp.Compare(b.bytes, a.bytes) })
	found := 0
	for _, v := range all[:min(len(all), trials)] {
		at := int(x.now.Device[v.op])
		f := Finding{Rule: FarWeights, Op: x.g.Op(v.op).Name, Device: x.Machine.Devices[at].Name, Ops: 1, Bytes: v.bytes, Seconds: x.Machine.TransferSeconds(at, v.to, v.bytes),
			Message: fmt.Sprintf("%s (%v) is on %s, where nothing reads it: it goes to %s every step", x.g.Op(v.op).Name, v.bytes, x.Machine.Devices[at].Name, x.Machine.Devices[v.to].Name),
			Fix:     "move it to " + x.Machine.Devices[v.to].Name}
		if x.helps(f, x.moved([]int32{int32(v.op)}, v.to)) {
			if found++; found == listed {
				return
			}
		}
	}
}

// readers yields the ops that read what op i makes, through views of it, but for those
// of the optimizer.
func (x *checker) readers(i graph.OpID, yield func(graph.OpID)) {
	first, end := x.g.Outputs(i)
	for t := first; t < end; t++ {
		for _, r := range x.g.Consumers(t) {
			switch o := x.g.Op(r); {
			case o.Phase == graph.Update:
			case o.Kind.Class() == graph.ClassMeta:
				x.readers(r, yield)
			default:
				yield(r)
			}
		}
	}
}

// region is a connected set of ops on one device.
type region struct {
	ops     []int32
	work    float64     // seconds
	traffic units.Bytes // in and out
	moving  float64     // seconds of it
	other   int         // the one device that it reads from and that reads from it
	lone    bool        // there is one such, and traffic both ways
}

// little is the part of a step that the work of a region is at most.
const little = 0.05

// pingPong finds regions of ops for which tensors go to a device and back again, and
// which take less time than the way there and back.
func (x *checker) pingPong() {
	var all []region
	for _, r := range x.regions() {
		if r.lone && r.work < min(r.moving, little*float64(x.result.Makespan)) {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b region) int { return cmp.Compare(b.moving-b.work, a.moving-a.work) })
	found := 0
	for _, r := range all[:min(len(all), trials)] {
		at := int(x.now.Device[r.ops[0]])
		here, there := x.Machine.Devices[at].Name, x.Machine.Devices[r.other].Name
		op := x.g.Op(graph.OpID(r.ops[0])).Name
		of := words.Count(len(r.ops), "op ("+op+") that takes", "ops ("+op+" first) that take")
		f := Finding{Rule: PingPong, Op: op, Device: here, Ops: len(r.ops), Bytes: r.traffic, Seconds: units.Seconds(r.moving),
			Message: fmt.Sprintf("%v go from %s to %s and back for %s %v", r.traffic, there, here, of, units.Seconds(r.work)),
			Fix:     "move them to " + there}
		if x.helps(f, x.moved(r.ops, r.other)) {
			if found++; found == listed {
				return
			}
		}
	}
}

// regions returns the sets of ops on one device that data connect, not counting what
// parameters and constants connect.
func (x *checker) regions() []region {
	n := x.g.NumOps()
	held := func(i graph.OpID) bool {
		c := x.g.Op(i).Kind.Class()
		return c == graph.ClassVariable || c == graph.ClassConst
	}
	joined := unionfind.New(n)
	for i := range graph.OpID(n) {
		for _, t := range x.g.Inputs(i) {
			if p := x.g.Tensor(t).Producer; x.now.Device[p] == x.now.Device[i] && !held(p) {
				joined.Join(int32(p), int32(i))
			}
		}
	}
	index := map[int32]int{}
	var all []region
	of := make([]int, n)
	for i := range graph.OpID(n) {
		root := joined.Root(int32(i))
		k, ok := index[root]
		if !ok {
			k = len(all)
			index[root] = k
			all = append(all, region{other: -1, lone: true})
		}
		of[i] = k
		all[k].ops = append(all[k].ops, int32(i))
		all[k].work += x.sim.OpSeconds(int(x.now.Device[i]))[i]
	}
	in, out := make([]bool, len(all)), make([]bool, len(all))
	for t := range graph.TensorID(x.g.NumTensors()) {
		tensor := x.g.Tensor(t)
		from := int(x.now.Device[tensor.Producer])
		var sent [64]bool
		for _, r := range x.g.Consumers(t) {
			to := int(x.now.Device[r])
			if to == from || sent[to] {
				continue
			}
			sent[to] = true
			s := float64(x.Machine.TransferSeconds(from, to, tensor.Bytes))
			a, b := of[tensor.Producer], of[r]
			all[a].meet(to, tensor.Bytes, s)
			all[b].meet(from, tensor.Bytes, s)
			out[a] = true
			in[b] = in[b] || !held(tensor.Producer)
		}
	}
	for k := range all {
		all[k].lone = all[k].lone && in[k] && out[k]
	}
	return all
}

// meet adds traffic with device d.
func (r *region) meet(d int, b units.Bytes, seconds float64) {
	if r.other < 0 {
		r.other = d
	}
	r.lone = r.lone && r.other == d
	r.traffic += b
	r.moving += seconds
}

// slowLinks looks for two equal devices whose exchange takes traffic from slow routes to
// faster ones.
func (x *checker) slowLinks() {
	m := x.Machine
	d := m.NumDevices()
	bytes := make([]units.Bytes, d*d)
	for t := range graph.TensorID(x.g.NumTensors()) {
		tensor := x.g.Tensor(t)
		from := int(x.now.Device[tensor.Producer])
		var sent [64]bool
		for _, r := range x.g.Consumers(t) {
			if to := int(x.now.Device[r]); to != from && !sent[to] {
				sent[to] = true
				bytes[from*d+to] += tensor.Bytes
			}
		}
	}
	var best Finding
	var device []uint8
	value := x.score
	for a := range d {
		for b := a + 1; b < d; b++ {
			if !m.Devices[a].SameFigures(&m.Devices[b]) || !x.apart(a, b) {
				continue
			}
			swapped := slices.Clone(x.now.Device)
			for i, v := range swapped {
				switch int(v) {
				case a:
					swapped[i] = uint8(b)
				case b:
					swapped[i] = uint8(a)
				}
			}
			if s := x.try(swapped); s.Better(value) {
				value, device = s, swapped
				from, to := slowest(m.Transfer, bytes, d)
				seconds := m.TransferSeconds(from, to, bytes[from*d+to])
				best = Finding{Rule: SlowLink, Device: m.Devices[from].Name, Bytes: bytes[from*d+to], Seconds: seconds,
					Message: fmt.Sprintf("%v go from %s to %s every step, which takes %v", bytes[from*d+to], m.Devices[from].Name, m.Devices[to].Name, seconds),
					Fix:     fmt.Sprintf("exchange what %s and %s run: the routes of the one are faster", m.Devices[a].Name, m.Devices[b].Name)}
			}
		}
	}
	if device != nil {
		x.helps(best, device)
	}
}

// apart reports whether devices a and b have routes of other figures to some device.
func (x *checker) apart(a, b int) bool {
	for c := range x.Machine.Devices {
		if c == a || c == b {
			continue
		}
		la, ba := x.Machine.Transfer(a, c)
		lb, bb := x.Machine.Transfer(b, c)
		if la != lb || ba != bb {
			return true
		}
	}
	return false
}

// slowest returns the pair of devices whose traffic takes longest.
func slowest(transfer func(int, int) (units.Seconds, units.BytesPerSecond), bytes []units.Bytes, d int) (from, to int) {
	var most units.Seconds
	for a := range d {
		for b := range d {
			if bytes[a*d+b] == 0 {
				continue
			}
			if _, rate := transfer(a, b); bytes[a*d+b].Over(rate) > most {
				most, from, to = bytes[a*d+b].Over(rate), a, b
			}
		}
	}
	return from, to
}
