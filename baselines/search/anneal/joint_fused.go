package anneal

import "placer/graph/fuse"

// describeFused adds up what the ops of changes, whose fusion priorities change, are told by.
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
