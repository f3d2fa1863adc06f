package anneal

import (
	"placer/graph"
	"placer/graph/fuse"
)

// describePlaced adds up what the ops of changes, which go to other devices, are told by.
func (a *jointAdviser) describePlaced(f *placeFacts, changes []jointChange) {
	t, g := &a.timeline, a.j.p.Graph
	stride := (len(changes) + mostDescribed - 1) / mostDescribed
	f.begin, f.slack, f.uniform = 1, 1, 1
	for k := 0; k < len(changes); k += stride {
		x := changes[k]
		i := x.op
		s, each := t.own[i]+1e-12, float64(stride)
		f.weight += s
		f.work += each * t.own[i]
		crit := t.critical[i]
		f.critical += each * t.own[i] * crit
		f.slack = min(f.slack, t.slack[t.kernel[i]]/t.step)
		f.wait += s * (t.start[i] - t.ready[i]) / t.step
		f.from += s * t.work[x.old]
		f.to += s * t.work[x.now]
		f.pathFrom += s * t.path[x.old] / t.step
		f.pathTo += s * t.path[x.now] / t.step
		begin, end := t.start[i]/t.step, (t.start[i]+t.takes[t.kernel[i]])/t.step
		f.begin, f.end = min(f.begin, begin), max(f.end, end)
		f.busyFrom += s * t.busyIn(x.old, begin, end)
		if x.now != changes[0].now {
			f.uniform = 0
		}
		e := a.transfers(i, g)
		f.saved += each * e.saved
		f.added += each * e.added
		f.savedCritical += each * e.savedCritical
		f.addedCrit += each * e.addedCritical
		later := max(e.arrives, 0) - max(e.arrived, 0)
		f.later += s * later / t.step
		f.laterCritical += s * crit * later / t.step
		delayed := e.sends - e.sent
		f.delayed += s * delayed / t.step
		f.delayedCritical += s * crit * delayed / t.step
		f.busyTo += s * t.busyIn(x.now, e.arrives/t.step, e.arrives/t.step+end-begin)
		torn, joined := a.partners(i, x.now)
		if torn {
			f.torn += each * max(0, a.alone(i, x.old)-t.own[i])
		}
		if joined {
			f.joined += each * t.own[i]
		}
	}
	for _, x := range []*float64{&f.wait, &f.from, &f.to, &f.pathFrom, &f.pathTo, &f.busyFrom, &f.busyTo, &f.later, &f.laterCritical, &f.delayed, &f.delayedCritical} {
		*x /= f.weight
	}
}

// alone returns the seconds of op i on device d where nothing is fused with it.
func (a *jointAdviser) alone(i int32, d uint8) float64 {
	return a.j.p.Evaluator.OpSeconds(int(d))[i]
}

// partners reports whether a kernel is torn because op i goes to device now, and whether
// there is what it may be fused with there.
func (a *jointAdviser) partners(i int32, now uint8) (torn, joined bool) {
	t := &a.timeline
	all := t.members(t.kernel[i])
	for _, o := range all[:min(len(all), mostSeen)] {
		torn = torn || o != i && a.j.device[o] != now
	}
	if a.j.fusion == nil || a.j.fusion[i] == fuse.Never {
		return torn, false
	}
	for _, v := range a.readers[i][:min(len(a.readers[i]), mostSeen)] {
		joined = joined || a.j.device[v] == now && a.deviceWas(v) != a.deviceWas(i)
	}
	return torn, joined
}

// transfers returns what the move does to the transfers of op i, in seconds, moments too.
func (a *jointAdviser) transfers(i int32, g *graph.Graph) (e exchanged) {
	t := &a.timeline
	was, now := a.deviceWas(i), a.j.device[i]
	// note enters that the transfer with v, which took before, takes after: it is cut no more, or
	// it is cut now.
	note := func(v int32, cut, cuts bool, before, after float64) {
		if cut == cuts {
			return
		}
		seconds := before
		if cuts {
			seconds = after
		}
		if a.stamp[v] == a.round { // v moves too, and has it as well
			seconds /= 2
		}
		on := seconds * t.critical[i] * t.critical[v]
		if cut {
			e.saved += seconds
			e.savedCritical += on
		} else {
			e.added += seconds
			e.addedCritical += on
		}
	}
	in := g.Inputs(graph.OpID(i))
	for _, x := range in[:min(len(in), mostSeen)] {
		u := int32(g.Tensor(x).Producer)
		if t.kernel[u] == t.kernel[i] && a.stamp[u] == a.round {
			continue
		}
		uWas, uNow := a.deviceWas(u), a.j.device[u]
		end := t.start[u] + t.takes[t.kernel[u]]
		before, after := t.links.seconds(uWas, was, g.Tensor(x).Bytes), t.links.seconds(uNow, now, g.Tensor(x).Bytes)
		e.arrived, e.arrives = max(e.arrived, end+before), max(e.arrives, end+after)
		note(u, uWas != was, uNow != now, before, after)
	}
	first, last := g.Outputs(graph.OpID(i))
	seen := 0
	for x := first; x < last; x++ {
		for _, v := range g.Consumers(x) {
			if seen++; seen > mostSeen {
				return e
			}
			v := int32(v)
			if t.kernel[v] == t.kernel[i] && a.stamp[v] == a.round {
				continue
			}
			vWas, vNow := a.deviceWas(v), a.j.device[v]
			before, after := t.links.seconds(was, vWas, g.Tensor(x).Bytes), t.links.seconds(now, vNow, g.Tensor(x).Bytes)
			e.sent, e.sends = max(e.sent, before), max(e.sends, after)
			note(v, was != vWas, now != vNow, before, after)
		}
	}
	return e
}
