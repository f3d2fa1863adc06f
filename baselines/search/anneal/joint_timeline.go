package anneal

import (
	"cmp"
	"slices"

	"placer/graph"
	"placer/graph/fuse"
	"placer/hw"
	"placer/plan"
	"placer/units"
)

// kernelTimeline is when the kernels of a plan run that was judged a while ago. Times are
// in seconds. Letters: N ops, K kernels, D devices.
type kernelTimeline struct {
	costs plan.KernelCosts
	rules *fuse.Rules
	links links
	known bool
	step  float64

	on           []bool    // [N] as plan.KernelCosts says, and so the next two
	ready, start []float64 // [N]
	critical     []float64 // [N] whether the op is on the critical path, of late
	own          []float64 // [N] the op's part of its kernel's time

	kernel  []int32   // [N]
	takes   []float64 // [K]
	at, ops []int32   // of kernel k: ops[at[k]:at[k+1]]
	holds   []uint8   // [K]
	slack   []float64 // [K] by how much the kernel can end later with the step as long
	order   []int32   // [K] kernels device by device, each by start
	place   []int32   // [K] the inverse
	rowAt   []int32   // [D+1] device d: order[rowAt[d]:rowAt[d+1]]

	work, path []float64 // [D] seconds of kernels; of those on the critical path
	busy       []float64 // [D,bins] share of each part of the step
}

// What a kernel holds of which there may be one.
const (
	holdsAnchor = 1 << iota
	holdsReduction
)

func newKernelTimeline(p *plan.Problem, rules *fuse.Rules) kernelTimeline {
	n, devices := p.Graph.NumOps(), p.Machine.NumDevices()
	ofOps := func() []float64 { return make([]float64, n) }
	return kernelTimeline{
		costs: p.Kernels(), rules: rules, links: newLinks(p.Machine), on: make([]bool, n), ready: ofOps(), start: ofOps(), critical: ofOps(), own: ofOps(),
		work: make([]float64, devices), path: make([]float64, devices), busy: make([]float64, devices*bins), rowAt: make([]int32, devices+1),
	}
}

// update makes the timeline of d on p.
func (t *kernelTimeline) update(p *plan.Problem, d plan.Decision) {
	t.step = t.costs.Timeline(&plan.Plan{Decision: d}, t.on, t.ready, t.start)
	t.readKernels(p, d)
	n := len(t.on)
	clear(t.work)
	clear(t.path)
	clear(t.busy)
	seconds := make([]float64, len(t.takes)) // of a kernel's ops alone
	for i := range n {
		seconds[t.kernel[i]] += p.Evaluator.OpSeconds(int(d.Device[i]))[i] + 1e-15
	}
	for i := range n {
		t.own[i] = t.takes[t.kernel[i]] * (p.Evaluator.OpSeconds(int(d.Device[i]))[i] + 1e-15) / seconds[t.kernel[i]]
		x := 0.0
		if t.on[i] {
			x = 1
		}
		if t.known {
			x = (x + t.critical[i]) / 2
		}
		t.critical[i] = x
	}
	for k := range t.takes {
		i := t.ops[t.at[k]]
		dev := d.Device[i]
		t.work[dev] += t.takes[k]
		if t.on[i] {
			t.path[dev] += t.takes[k]
		}
		occupy(t.busy[int(dev)*bins:][:bins], t.start[i]/t.step, t.takes[k]/t.step)
	}
	t.sort(d)
	t.relax(p, d)
	t.known = true
}

// readKernels fills in the kernels of d.
func (t *kernelTimeline) readKernels(p *plan.Problem, d plan.Decision) {
	n := len(t.on)
	if d.Fusion == nil {
		t.kernel, t.takes = t.kernel[:0], t.takes[:0]
		for i := range n {
			t.kernel = append(t.kernel, int32(i))
			t.takes = append(t.takes, p.Evaluator.OpSeconds(int(d.Device[i]))[i])
		}
	} else {
		kernel, takes := t.costs.Fuse(d.Device, d.Fusion)
		t.kernel, t.takes = append(t.kernel[:0], kernel...), append(t.takes[:0], takes...)
	}
	k := len(t.takes)
	t.at = append(t.at[:0], make([]int32, k+1)...)
	t.ops = append(t.ops[:0], make([]int32, n)...)
	t.holds = append(t.holds[:0], make([]uint8, k)...)
	for i, c := range t.kernel {
		t.at[c+1]++
		switch t.rules.Role(graph.OpID(i)) {
		case graph.FuseAnchor:
			t.holds[c] |= holdsAnchor
		case graph.FuseReduce:
			t.holds[c] |= holdsReduction
		}
	}
	for c := range k {
		t.at[c+1] += t.at[c]
	}
	fill := slices.Clone(t.at)
	for i, c := range t.kernel {
		t.ops[fill[c]] = int32(i)
		fill[c]++
	}
}

// members returns the ops of kernel k.
func (t *kernelTimeline) members(k int32) []int32 { return t.ops[t.at[k]:t.at[k+1]] }

// begins returns when kernel k starts.
func (t *kernelTimeline) begins(k int32) float64 { return t.start[t.ops[t.at[k]]] }

// sort orders the kernels of each device by their start.
func (t *kernelTimeline) sort(d plan.Decision) {
	k := len(t.takes)
	t.order, t.place = t.order[:0], append(t.place[:0], make([]int32, k)...)
	for c := range int32(k) {
		t.order = append(t.order, c)
	}
	device := func(c int32) uint8 { return d.Device[t.ops[t.at[c]]] }
	slices.SortFunc(t.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(device(a), device(b)), cmp.Compare(t.begins(a), t.begins(b)), cmp.Compare(a, b))
	})
	clear(t.rowAt)
	for at, c := range t.order {
		t.place[c] = int32(at)
		t.rowAt[device(c)+1]++
	}
	for x := range len(t.rowAt) - 1 {
		t.rowAt[x+1] += t.rowAt[x]
	}
}

// relax computes slack: kernels in falling order of their start, each to end before the
// next on its device and before its readers, less what the transfer takes alone.
func (t *kernelTimeline) relax(p *plan.Problem, d plan.Decision) {
	k := len(t.takes)
	late := append(t.slack[:0], make([]float64, k)...) // latest start
	falling := slices.Clone(t.order)
	slices.SortStableFunc(falling, func(a, b int32) int { return cmp.Compare(t.begins(b), t.begins(a)) })
	g := p.Graph
	for _, c := range falling {
		end := t.step
		dev := d.Device[t.ops[t.at[c]]]
		if next := t.place[c] + 1; next < t.rowAt[dev+1] {
			end = min(end, late[t.order[next]])
		}
		for _, i := range t.members(c) {
			first, last := g.Outputs(graph.OpID(i))
			for x := first; x < last; x++ {
				for _, v := range g.Consumers(x) {
					if t.kernel[v] == c {
						continue
					}
					to := late[t.kernel[v]]
					if d.Device[v] != dev {
						to -= t.links.seconds(dev, d.Device[v], g.Tensor(x).Bytes)
					}
					end = min(end, to)
				}
			}
		}
		late[c] = max(end-t.takes[c], t.begins(c))
	}
	for c := range late {
		late[c] -= t.begins(int32(c))
	}
	t.slack = late
}

// busyIn returns the share of the time between two moments, shares of the step, in which
// device d is busy.
func (t *kernelTimeline) busyIn(d uint8, from, to float64) float64 {
	return busyIn(t.busy[int(d)*bins:][:bins], from, to)
}

// links is what transfers between devices take that nothing else holds up.
type links struct {
	devices          int
	latency, perByte []float64 // [D,D] seconds
}

func newLinks(m *hw.Machine) links {
	d := m.NumDevices()
	x := links{d, make([]float64, d*d), make([]float64, d*d)}
	for from := range d {
		for to := range d {
			if from != to {
				latency, bandwidth := m.Transfer(from, to)
				x.latency[from*d+to], x.perByte[from*d+to] = float64(latency), 1/float64(bandwidth)
			}
		}
	}
	return x
}

// seconds returns what b bytes take from one device to another, 0 from one to itself.
func (x *links) seconds(from, to uint8, b units.Bytes) float64 {
	at := int(from)*x.devices + int(to)
	return x.latency[at] + float64(b)*x.perByte[at]
}

// mayJoin reports whether two kernels may become one by their size and by what they hold.
func (t *kernelTimeline) mayJoin(a, b int32) bool {
	if t.at[a+1]-t.at[a]+t.at[b+1]-t.at[b] > fuse.MaxOps {
		return false
	}
	x, y := t.holds[a], t.holds[b]
	return x&y&holdsAnchor == 0 && (x|y) != holdsAnchor|holdsReduction
}
