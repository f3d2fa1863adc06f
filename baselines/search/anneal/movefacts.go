package anneal

// moveFacts is what the features of a move are made of. Work and transfers are in seconds,
// begin to delayedCritical are shares of the step; where several decisions move, devices
// and moments are means by their work.
type moveFacts struct {
	temperature, run, tools  float64
	step                     float64 // the present cost
	mean, devices, decisions float64 // mean: work of a device

	changed, work, weightless float64
	most, mostAfter           float64
	from, to, after           float64
	saved, savedCritical      float64
	added, addedCritical      float64
	critical                  float64
	one                       bool

	begin, end                 float64
	wait                       float64
	busyFrom, busyTo, busyThen float64
	pathFrom, pathTo           float64
	later, laterCritical       float64
	delayed, delayedCritical   float64
}

// mostDescribed bounds the decisions of a move that are looked at one by one: of more,
// every second counts for two, and so on.
const mostDescribed = 24

// describe writes the features of the move c that the replica plans, [F].
func (a *adviser) describe(c *candidate, temperature float64, run int, to []float32) {
	w := a.w
	changes := a.changes[c.lo:c.hi]
	f := moveFacts{
		temperature: temperature, run: float64(run), tools: w.moves.chance[c.kind] * float64(w.moves.n),
		step: w.cost, devices: float64(w.devices), decisions: float64(len(w.now)), changed: float64(len(changes)), one: true, begin: 1,
	}
	a.loads(&f, changes)
	stride := (len(changes) + mostDescribed - 1) / mostDescribed
	weight := 0.0
	for k := 0; k < len(changes); k += stride {
		x := changes[k]
		s := w.seconds[x.u] + 1e-12
		weight += s
		f.from += s * a.before[x.old]
		f.to += s * a.before[x.now]
		f.after += s * w.busy[x.now]
		e := a.exchanges(x.u)
		f.saved += float64(stride) * e.saved
		f.added += float64(stride) * e.added
		f.savedCritical += float64(stride) * e.savedCritical
		f.addedCritical += float64(stride) * e.addedCritical
		a.times(&f, x, &e, s, float64(stride))
	}
	for _, x := range []*float64{&f.from, &f.to, &f.after, &f.wait, &f.pathFrom, &f.pathTo, &f.busyFrom, &f.busyTo, &f.busyThen, &f.later, &f.delayed, &f.laterCritical, &f.delayedCritical} {
		*x /= weight
	}
	clear(to)
	for k := range moveFeatures {
		to[k] = float32(moveFeatures[k].of(&f))
	}
	to[len(moveFeatures)+c.kind] = 1
}

// loads fills in what the move does to the work of devices; a.before is that before it.
func (a *adviser) loads(f *moveFacts, changes []change) {
	total := 0.0
	for d, b := range a.w.busy { // the move is in there
		total += b
		f.mostAfter = max(f.mostAfter, b)
		a.before[d] = b
	}
	f.mean = total/f.devices + 1e-15
	for _, x := range changes {
		s := a.w.seconds[x.u]
		a.before[x.now] -= s
		a.before[x.old] += s
		f.work += s
		if s == 0 {
			f.weightless++
		}
		f.one = f.one && x.now == changes[0].now
	}
	f.weightless /= f.changed
	for _, b := range a.before {
		f.most = max(f.most, b)
	}
}

// exchanged is what a move does to the transfers of a decision. Moments are shares of the
// step: arrived is when the last input was there, by the timeline, and arrives when it
// would be after the move; sent and sends are what the longest transfer to a reader took
// and would take.
type exchanged struct {
	saved, added, savedCritical, addedCritical float64 // seconds
	arrived, arrives, sent, sends              float64
}

func (a *adviser) exchanges(u int32) (e exchanged) {
	w, t := a.w, &a.timeline
	near, bytes := w.near.Neighbours(u)
	for i, v := range near {
		seconds := bytes[i] * a.perByte
		cut, cuts := a.was[u] != a.was[v], w.now[u] != w.now[v]
		if t.known {
			was, now := 0.0, 0.0
			if cut {
				was = seconds / w.cost
			}
			if cuts {
				now = seconds / w.cost
			}
			if t.end[v] <= t.begin[u] {
				e.arrived, e.arrives = max(e.arrived, t.end[v]+was), max(e.arrives, t.end[v]+now)
			} else if t.begin[v] >= t.end[u] {
				e.sent, e.sends = max(e.sent, was), max(e.sends, now)
			}
		}
		if cut == cuts {
			continue
		}
		if a.stamp[v] == a.round { // v moves too: the two meet twice
			seconds /= 2
		}
		on := seconds * t.critical[u] * t.critical[v]
		if cut {
			e.saved += seconds
			e.savedCritical += on
		} else {
			e.added += seconds
			e.addedCritical += on
		}
	}
	return e
}

// times adds what the timeline says of decision x, of s seconds, which stands for each
// decisions.
func (a *adviser) times(f *moveFacts, x change, e *exchanged, s, each float64) {
	t := &a.timeline
	if !t.known {
		return
	}
	begin, end := t.begin[x.u], t.end[x.u]
	on := s * t.critical[x.u]
	f.critical += each * on
	f.wait += s * t.waits[x.u]
	f.begin, f.end = min(f.begin, begin), max(f.end, end)
	f.pathFrom += s * t.path[x.old]
	f.pathTo += s * t.path[x.now]
	f.busyFrom += s * t.busyIn(x.old, begin, end)
	f.busyTo += s * t.busyIn(x.now, begin, end)
	f.busyThen += s * t.busyIn(x.now, e.arrives, e.arrives+max(0, end-begin))
	f.later += s * (e.arrives - e.arrived)
	f.delayed += s * (e.sends - e.sent)
	f.laterCritical += on * (e.arrives - e.arrived)
	f.delayedCritical += on * (e.sends - e.sent)
}
