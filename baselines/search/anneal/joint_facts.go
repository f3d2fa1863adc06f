package anneal

import (
	"math"

	"placer/graph"
	"placer/graph/fuse"
)

// jointFacts is what the features of a joint move are made of, in seconds but for counts
// and shares. Where several ops are concerned, what is no sum is a mean, by their time.
type jointFacts struct {
	step, temperature, devices, ops, mean, most, success float64
	placed, urged, fused                                 float64 // ops

	place placeFacts
	shift shiftFacts
	fuse  fuseFacts
}

// placeFacts is what goes to other devices.
type placeFacts struct {
	work, critical, slack, wait            float64
	from, to, pathFrom, pathTo             float64
	saved, added, savedCritical, addedCrit float64
	torn, joined                           float64 // what fusion saved and is lost; seconds that have a partner to fuse with there
	busyFrom, busyTo, later, laterCritical float64
	begin, end, weight, delayed            float64
	delayedCritical, uniform               float64
}

// shiftFacts is what becomes more urgent, or less.
type shiftFacts struct {
	work, critical, slack, wait   float64
	delta, sign                   float64 // logarithm; 1 for less urgent
	leading                       float64 // share of the ops whose kernel's priority changes
	passes, passed, passedCrit    float64 // kernels overtaken that count, their seconds, those on the critical path
	passedSlack, earliest, weight float64 // least slack of them; by how much what is urged could start earlier, or is late
	none                          float64 // 1: nothing is passed
	hurt, helped                  float64 // by how much what is passed would be late beyond its slack; critical seconds that could start earlier
}

// fuseFacts is what is fused, or no more.
type fuseFacts struct {
	joins, breaks, illegal, reordered    float64 // edges
	launches, traffic                    float64 // saved, seconds; negative: lost
	launchesCritical, trafficCritical    float64
	gap, late, lateCritical, slack, size float64
	critical, work, weight, level, never float64
	kept, anchors                        float64
}

// mostSeen bounds the neighbours of an op that are looked at, and the kernels beside one on
// its device.
const mostSeen = 12

// describe writes the features of the move c that the walk plans, [F].
func (a *jointAdviser) describe(c *jointCandidate, temperature float64, to []float32) {
	t := &a.timeline
	f := jointFacts{
		step: t.step, temperature: temperature, devices: float64(len(t.work)), ops: float64(len(t.on)), success: chance(c.m),
		placed: float64(c.devices[1] - c.devices[0]), fused: float64(c.fusings[1] - c.fusings[0]),
	}
	for _, w := range t.work {
		f.mean += w / f.devices
		f.most = max(f.most, w)
	}
	if c.devices[0] < c.devices[1] {
		a.describePlaced(&f.place, a.devices[c.devices[0]:c.devices[1]])
	}
	for _, x := range a.all[c.shifts[0]:c.shifts[1]] {
		f.urged += float64(len(x.ops))
		a.describeShift(&f.shift, x)
	}
	f.shift.mean()
	if c.fusings[0] < c.fusings[1] {
		a.describeFused(&f.fuse, a.fusings[c.fusings[0]:c.fusings[1]])
	}
	for k := range jointFeatures {
		to[k] = float32(jointFeatures[k].of(&f))
	}
	kinds := to[len(jointFeatures):]
	clear(kinds)
	kinds[c.m.kind] = 1
}

// deviceWas returns the device of op i before the move that is looked at.
func (a *jointAdviser) deviceWas(i int32) uint8 {
	if a.stamp[i] == a.round {
		return a.was[i]
	}
	return a.j.device[i]
}

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
	note := func(v int32, seconds, seconds2 float64, cut, cuts bool) {
		if cut == cuts {
			return
		}
		if cuts {
			seconds = seconds2
		}
		if a.stamp[v] == a.round {
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
		before, after := 0.0, 0.0
		if uWas != was {
			before = t.links.seconds(uWas, was, g.Tensor(x).Bytes)
		}
		if uNow != now {
			after = t.links.seconds(uNow, now, g.Tensor(x).Bytes)
		}
		e.arrived, e.arrives = max(e.arrived, end+before), max(e.arrives, end+after)
		note(u, before, after, uWas != was, uNow != now)
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
			before, after := 0.0, 0.0
			if vWas != was {
				before = t.links.seconds(was, vWas, g.Tensor(x).Bytes)
			}
			if vNow != now {
				after = t.links.seconds(now, vNow, g.Tensor(x).Bytes)
			}
			e.sent, e.sends = max(e.sent, before), max(e.sends, after)
			note(v, before, after, vWas != was, vNow != now)
		}
	}
	return e
}

// lead returns the lowest key of the kernel k, and of it after x.
func (a *jointAdviser) lead(k int32, x *keyShift) (was, now float64) {
	was, now = math.Inf(1), math.Inf(1)
	for _, o := range a.timeline.members(k) {
		key := a.j.keys.key[o]
		was = min(was, key)
		if a.urged[o] == a.shift {
			key += x.delta
		}
		now = min(now, key)
	}
	return was, now
}

func (a *jointAdviser) describeShift(f *shiftFacts, x keyShift) {
	t := &a.timeline
	a.shift++
	for _, i := range x.ops {
		a.urged[i] = a.shift
	}
	f.delta = max(f.delta, math.Log(1+math.Abs(x.delta)))
	if x.delta > 0 {
		f.sign = 1
	}
	if f.weight == 0 {
		f.passedSlack = 1
	}
	stride := (len(x.ops) + mostDescribed - 1) / mostDescribed
	for n := 0; n < len(x.ops); n += stride {
		i := x.ops[n]
		k := t.kernel[i]
		s, each := t.own[i]+1e-12, float64(stride)
		f.weight += s
		f.work += each * t.own[i]
		f.critical += each * t.own[i] * t.critical[i]
		f.slack += s * t.slack[k] / t.step
		f.wait += s * (t.start[i] - t.ready[i]) / t.step
		was, now := a.lead(k, &x)
		if was == now {
			continue
		}
		f.leading += s
		if x.delta < 0 {
			a.overtakes(f, &x, i, k, now, s, each)
		} else {
			a.yields(f, &x, i, k, now, s, each)
		}
	}
}

// overtakes adds the kernels before k on its device that it would pass: those that start
// after k's inputs are there and are then less urgent.
func (a *jointAdviser) overtakes(f *shiftFacts, x *keyShift, i, k int32, now, s, each float64) {
	t := &a.timeline
	row := t.rowAt[a.j.device[i]]
	earliest := t.start[i]
	for at, n := t.place[k]-1, 0; at >= row && n < mostSeen; at, n = at-1, n+1 {
		o := t.order[at]
		begin := t.begins(o)
		if begin+1e-12 < t.ready[i] {
			break
		}
		if _, key := a.lead(o, x); key <= now {
			continue
		}
		first := t.ops[t.at[o]]
		f.passes += each
		f.passed += each * t.takes[o]
		f.passedCrit += each * t.takes[o] * t.critical[first]
		f.passedSlack = min(f.passedSlack, t.slack[o]/t.step)
		f.hurt = max(f.hurt, t.takes[k]-t.slack[o])
		earliest = min(earliest, begin)
	}
	f.earliest += s * (t.start[i] - earliest) / t.step
	f.helped += each * t.critical[i] * (t.start[i] - earliest)
}

// yields adds the kernels after k on its device that would pass it.
func (a *jointAdviser) yields(f *shiftFacts, x *keyShift, i, k int32, now, s, each float64) {
	t := &a.timeline
	end := t.rowAt[a.j.device[i]+1]
	late := 0.0
	for at, n := t.place[k]+1, 0; at < end && n < mostSeen; at, n = at+1, n+1 {
		o := t.order[at]
		first := t.ops[t.at[o]]
		if _, key := a.lead(o, x); key >= now || t.ready[first] > t.start[i]+late+1e-12 {
			continue
		}
		f.passes += each
		f.passed += each * t.takes[o]
		f.passedCrit += each * t.takes[o] * t.critical[first]
		f.passedSlack = min(f.passedSlack, t.slack[o]/t.step)
		f.helped += each * t.critical[first] * (t.begins(o) - t.start[i])
		late += t.takes[o]
	}
	f.earliest += s * late / t.step
	f.hurt = max(f.hurt, late-t.slack[k])
}

// mean ends the sums of describeShift.
func (f *shiftFacts) mean() {
	if f.weight == 0 {
		return
	}
	for _, x := range []*float64{&f.slack, &f.wait, &f.leading, &f.earliest} {
		*x /= f.weight
	}
	if f.passes == 0 {
		f.none = 1
	}
}

func (a *jointAdviser) describeFused(f *fuseFacts, changes []jointChange) {
	t := &a.timeline
	stride := (len(changes) + mostDescribed - 1) / mostDescribed
	f.slack = 1
	for n := 0; n < len(changes); n += stride {
		x := changes[n]
		u, each := x.op, float64(stride)
		d, ku := a.j.device[u], t.kernel[x.op]
		s := t.takes[ku] + 1e-12
		f.weight += s
		f.work += each * t.own[u]
		f.critical += each * t.own[u] * t.critical[u]
		f.slack = min(f.slack, t.slack[ku]/t.step)
		f.level += s * (float64(x.now) - float64(x.old))
		if x.now == fuse.Never {
			f.never += s
		}
		joins, breaks, outside, crit := 0.0, 0.0, 0.0, t.critical[u]
		late := 0.0
		for _, v := range a.readers[u][:min(len(a.readers[u]), mostSeen)] {
			kv := t.kernel[v]
			switch {
			case a.j.device[v] != d:
				outside++
			case kv == ku && x.now == fuse.Never:
				breaks++
				crit = max(crit, t.critical[v])
			case kv == ku:
				f.kept += each
			case x.now == fuse.Never || x.now < x.old:
				outside++
			case !t.mayJoin(ku, kv):
				f.illegal += each
				outside++
			case x.old != fuse.Never:
				f.reordered += each
				outside++
			default:
				joins++
				crit = max(crit, t.critical[v])
				f.gap += s * (t.start[v] - t.start[u] - t.takes[ku]) / t.step
				f.size += s * float64(t.at[ku+1]-t.at[ku]+t.at[kv+1]-t.at[kv]) / fuse.MaxOps
				if (t.holds[ku]|t.holds[kv])&holdsAnchor != 0 {
					f.anchors += s
				}
				// What ku makes for others comes when both are done.
				late = max(late, max(t.ready[v], t.start[u])+t.takes[kv])
			}
		}
		launches := each * (joins - breaks) * a.launch[d]
		traffic := each * (joins - breaks) * a.outBytes[u] * a.perByte[d]
		if outside == 0 { // nor need it be written
			traffic *= 2
		}
		f.joins, f.breaks = f.joins+each*joins, f.breaks+each*breaks
		f.launches, f.launchesCritical = f.launches+launches, f.launchesCritical+crit*launches
		f.traffic, f.trafficCritical = f.traffic+traffic, f.trafficCritical+crit*traffic
		if late > 0 {
			late = max(0, late-t.start[u]-t.slack[ku])
			f.late += s * late / t.step
			f.lateCritical += s * crit * late / t.step
		}
	}
	for _, x := range []*float64{&f.level, &f.never, &f.gap, &f.size, &f.anchors, &f.late, &f.lateCritical} {
		*x /= f.weight
	}
}
