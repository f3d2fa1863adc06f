package sim

// A dual is a choice of weights and prices that proves a bound of the work. Let a
// device of class c have the weight w[c], with the weights of all devices summing
// to 1, and a byte of its memory the price m[c] >= 0. In a step of time T a device
// is busy for at most T, so the weighted busy time of all devices is at most T.
// An item adds at least min over c of w[c] seconds[c] to it; hence
//
//	T >= sum over items of min over c of w[c] seconds[c]
//
// for every choice of weights. In a feasible plan the resident bytes of a device
// do not exceed its memory, so that further
//
//	T >= sum over items of min over c of (w[c] seconds[c] + m[c] resident)
//	   - sum over devices of m[c] memory[c].
//
// The best choice is as good as the fractional assignment of items to devices; for
// equal devices it is total work over D.
type dual struct {
	weight []float64 // [classes]
	price  []float64 // [classes], or nil: memory does not matter
}

func (u dual) copy(v dual) {
	copy(u.weight, v.weight)
	copy(u.price, v.price)
}

// weigh returns the bound that u proves. If slope is not nil it adds to it a
// supergradient of the bound.
func (b *bounder) weigh(u dual, slope *dual) (seconds float64) {
	for k := range b.items {
		it := &b.items[k]
		least, at := inf, 0
		for c, s := range it.seconds {
			x := float64(u.weight[c] * s)
			if s == inf { // 0 * inf is no number
				continue
			}
			if u.price != nil {
				x += float64(u.price[c] * it.resident)
			}
			if x < least {
				least, at = x, c
			}
		}
		seconds += least
		if slope != nil {
			slope.weight[at] += it.seconds[at]
			if u.price != nil {
				slope.price[at] += it.resident
			}
		}
	}
	for c, p := range u.price {
		room := b.classes[c].count * b.classes[c].memory
		seconds -= p * room
		if slope != nil {
			slope.price[c] -= room
		}
	}
	return seconds
}

// work returns the best weights that it finds and the bound of work.
func (b *bounder) work() (weight []float64, seconds float64) {
	weight = make([]float64, len(b.classes))
	least, total := 0.0, make([]float64, len(b.classes))
	for _, it := range b.items {
		m := inf
		for _, s := range it.seconds {
			m = min(m, s)
		}
		least += m
		for c, s := range it.seconds {
			if s == inf {
				s = m // does not fit: says nothing about the class's speed
			}
			total[c] += s
		}
	}
	sum := 0.0
	for c := range weight { // exact where devices differ by a factor alone
		weight[c] = least / total[c]
		sum += weight[c] * b.classes[c].count
	}
	for c := range weight {
		weight[c] /= sum
	}
	u := dual{weight: weight}
	return weight, b.climb(u, inf)
}

// memory returns the bound of work where the best devices cannot hold all that
// they would like to run. A fractional assignment, if there is one, takes no more
// than the work of all items on their slowest devices; a bound above that, or
// resident bytes above all memory together, proves that no plan fits, and memory
// returns false.
func (b *bounder) memory(weight []float64) (seconds float64, possible bool) {
	resident, room, most := 0.0, 0.0, 0.0
	for _, it := range b.items {
		resident += it.resident
		slowest := 0.0
		for _, s := range it.seconds {
			if s != inf {
				slowest = max(slowest, s)
			}
		}
		most += slowest
	}
	for _, c := range b.classes {
		room += c.count * c.memory
	}
	if resident > room {
		return 0, false
	}
	if len(b.classes) == 1 || resident == 0 { // prices cannot gain anything
		return b.weigh(dual{weight: weight}, nil), true
	}
	most *= 1 + 1e-6
	u := dual{append([]float64(nil), weight...), make([]float64, len(weight))}
	seconds = b.climb(u, most)
	return seconds, seconds <= most
}

// climb improves u by supergradient steps, whose lengths aim at a target a little
// above the best bound so far, and returns the best bound. It stops above enough.
func (b *bounder) climb(u dual, enough float64) (best float64) {
	best = b.weigh(u, nil)
	if len(u.weight) == 1 {
		return best
	}
	fresh := func() dual {
		v := dual{weight: make([]float64, len(u.weight))}
		if u.price != nil {
			v.price = make([]float64, len(u.price))
		}
		return v
	}
	at, slope := fresh(), fresh()
	at.copy(u)
	rounds := max(30, min(1000, 10_000_000/len(b.items)))
	aim, stalled := 1.0, 0
	for range rounds {
		clear(slope.weight)
		clear(slope.price)
		value := b.weigh(at, &slope)
		if value > best*(1+1e-6) {
			stalled = 0
		} else if stalled++; stalled > 20 {
			aim, stalled = aim*0.7, 0
		}
		if value > best {
			best = value
			u.copy(at)
		}
		if best > enough {
			break
		}
		b.step(at, slope, best*(1+aim)-value)
	}
	return best
}

// step moves u along slope as far as a linear bound would need to gain so much,
// in the variables that share the scale of the bound: the weights of whole
// classes and the prices of their whole memory.
func (b *bounder) step(u, slope dual, gain float64) {
	norm, mean := 0.0, 0.0
	for c, x := range b.classes {
		slope.weight[c] /= x.count
		mean += slope.weight[c] / float64(len(b.classes))
	}
	for c, x := range b.classes {
		slope.weight[c] -= mean // stay on the plane where the weights sum to 1
		norm += slope.weight[c] * slope.weight[c]
		if u.price != nil {
			slope.price[c] /= x.count * x.memory
			norm += slope.price[c] * slope.price[c]
		}
	}
	if norm == 0 {
		return
	}
	length, sum := gain/norm, 0.0
	for c, x := range b.classes {
		u.weight[c] = max(0, u.weight[c]+length*slope.weight[c]/x.count)
		sum += u.weight[c] * x.count
		if u.price != nil {
			u.price[c] = max(0, u.price[c]+length*slope.price[c]/(x.count*x.memory))
		}
	}
	for c := range u.weight {
		u.weight[c] /= sum
	}
}
