package anneal

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
