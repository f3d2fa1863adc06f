package anneal

import "math"

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

// describeShift adds to f what the ops of x, which become more urgent or less, are told by.
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
