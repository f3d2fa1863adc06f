package throughput

import (
	"context"
	"math"
	"slices"
)

// Sizes of the packing bound.
const (
	packGrid = 2048 // steps of a load
	packOpen = 12   // nets that an order may leave open
	packSets = 2000 // sets of blocks
	packSeek = 8    // halvings of what is between the bounds
	// packRound is the least that a change of prices costs, in entries.
	packRound = 256
)

// PackingBound returns a proven lower bound from low, which is one, to high, a
// load that is reached or that is impossible to be better than. It is slower and
// tighter than Bound where tensors cost as much as ops: all tables (below) together
// have at most three times effort entries, a million or two of which take a second. An instance
// with several kinds of accelerators or CPUs, or without an order in which few
// nets are open, keeps low.
//
// Let every set of blocks have a price, and let V be the most that a device can
// hold, in prices, with a load of at most t. The devices together hold at most the
// sum of V, so t is impossible if the prices add up to more: the dual of the
// linear program that covers the blocks with device loads. V of a CPU, which pays
// no communication, is a fractional knapsack. V of an accelerator is a dynamic
// program along an order of the sets in which few nets are open at a time; its
// state says of every open net whether all, none or some of its sets so far are
// held, and it keeps what is not dominated in load and price. Loads are counted in
// steps of t/2048, each item rounded down, so V is never too small. Prices start
// as the sets' times and fall where the best device loads hold more than is there.
func (x *Instance) PackingBound(ctx context.Context, low, high float64, effort int) float64 {
	if math.IsInf(high, 1) || !(high > low) || x.pins() > effort {
		return low
	}
	for seek := range packSeek {
		if effort <= 0 || high <= low*(1+1e-4) {
			break
		}
		t := (low + high) / 2
		share := effort / (packSeek - seek)
		proven, spent := x.overpacked(ctx, t*(1+1e-12), share, 2*effort)
		if ctx.Err() != nil {
			break
		}
		effort -= spent
		if proven {
			low = t
		} else {
			high = t
		}
	}
	return low
}

// overpacked reports whether prices prove that no placement has all loads at most
// t, and the entries that it took to try. It begins no table once effort is spent,
// and gives up a table that would have more than limit entries.
func (x *Instance) overpacked(ctx context.Context, t float64, effort, limit int) (proven bool, spent int) {
	p := newProof(x, t)
	for ctx.Err() == nil {
		again, contradiction := p.round(ctx)
		if contradiction {
			return true, 1
		}
		if !again {
			break
		}
	}
	k := newPacking(p)
	if k == nil {
		return false, effort
	}
	return k.prove(effort, min(limit, packEntries))
}

// packing is the sets of a proof in order, with their prices.
type packing struct {
	t       float64
	cost    []int32     // [sets] load of an accelerator, in steps; above packGrid: none can
	cpu     []float64   // [sets] seconds on a CPU; nil: there is none
	touches [][]packNet // [sets]
	price   []float64   // [sets]
	numCPU  int
	numAcc  int
	entries []packEntry // of all tables, one after the other
	next    []packEntry
}

// packNet is a net as one of its sets meets it.
type packNet struct {
	weight      int32 // steps
	slot        int   // of the state, while the net is open
	first, last bool  // whether the set is its first or last in order
}

// newPacking returns the packing of p, nil where there is none (PackingBound).
func newPacking(p *proof) *packing {
	x, k := p.x, &packing{t: p.t}
	acc, cpu := -1, -1
	for c := range x.Classes {
		kind, count := &acc, &k.numAcc
		if x.Classes[c].CPU {
			kind, count = &cpu, &k.numCPU
		}
		if *kind >= 0 {
			return nil
		}
		*kind, *count = c, len(x.Classes[c].Devices)
	}
	if acc < 0 {
		return nil
	}
	roots, nets := p.merged()
	order := narrow(len(roots), nets)
	if order == nil {
		return nil
	}
	step := p.t / packGrid
	steps := func(s float64) int32 { return int32(min(s/step*(1-1e-12), packGrid+1)) }
	place := make([]int, len(order))
	for at, s := range order {
		place[s] = at
		r := roots[s]
		t := p.time[acc][r]
		if t > p.t || p.bytes[r] > x.Classes[acc].Memory {
			k.cost = append(k.cost, packGrid+1)
		} else {
			k.cost = append(k.cost, steps(t))
		}
		if math.IsInf(t, 1) {
			t = 0
		}
		k.price = append(k.price, min(t, p.t)+1e-6*p.t)
		if cpu >= 0 {
			k.cpu = append(k.cpu, p.time[cpu][r])
		}
	}
	k.touches = make([][]packNet, len(order))
	touched := make([][]int32, len(order)) // nets
	left := make([]int, len(nets))
	for e, n := range nets {
		left[e] = len(n.Blocks)
		for _, s := range n.Blocks {
			touched[place[s]] = append(touched[place[s]], int32(e))
		}
	}
	var free []int
	slots, slot := 0, make([]int, len(nets))
	for at := range touched {
		for _, e := range touched[at] {
			first := left[e] == len(nets[e].Blocks)
			if first {
				if len(free) == 0 {
					free = append(free, slots)
					slots++
				}
				slot[e], free = free[len(free)-1], free[:len(free)-1]
			}
			left[e]--
			k.touches[at] = append(k.touches[at], packNet{steps(nets[e].Seconds), slot[e], first, left[e] == 0})
		}
		for _, e := range touched[at] { // a slot is free after the set, not within
			if left[e] == 0 {
				free = append(free, slot[e])
			}
		}
	}
	if slots > 16 { // two bits each
		return nil
	}
	return k
}

// merged returns the roots of the sets, and the nets between them by the roots'
// indexes.
func (p *proof) merged() (roots []int32, nets []Net) {
	roots = p.roots()
	index := make([]int32, len(p.sets))
	for k, r := range roots {
		index[r] = int32(k)
	}
	return roots, merge(context.Background(), p.x.Nets, func(b int32) int32 { return index[p.sets.Root(b)] })
}

// prove changes prices until they prove t impossible or effort is spent. A table
// has at most limit entries.
func (k *packing) prove(effort, limit int) (proven bool, spent int) {
	for round := 0; ; round++ {
		v, held, ok := k.accelerator(limit)
		spent += max(len(k.entries), packRound)
		if !ok {
			return false, max(spent, effort)
		}
		w, onCPU := k.knapsack()
		var all float64
		for _, x := range k.price {
			all += x
		}
		if all > (float64(k.numAcc)*v+float64(k.numCPU)*w)*(1+1e-9) {
			return true, spent
		}
		if spent >= effort {
			return false, spent
		}
		// A set that the devices hold n times is worth n-1 too much.
		rate := 0.3 / (1 + float64(round)/20) / float64(k.numAcc)
		for s := range k.price {
			excess := -1.0
			if held[s] {
				excess += float64(k.numAcc)
			}
			if k.cpu != nil {
				excess += float64(k.numCPU) * onCPU[s]
			}
			k.price[s] *= math.Exp(-rate * excess)
		}
	}
}

// knapsack returns the most that one CPU can hold in prices, and shares of sets.
func (k *packing) knapsack() (float64, []float64) {
	if k.cpu == nil {
		return 0, nil
	}
	order := make([]int, len(k.price))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := k.price[a]*k.cpu[b], k.price[b]*k.cpu[a]
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	share := make([]float64, len(k.price))
	room, value := k.t, 0.0
	for _, s := range order {
		if k.cpu[s] > k.t {
			continue
		}
		if k.cpu[s] <= room {
			share[s] = 1
		} else {
			share[s] = room / k.cpu[s]
		}
		value += share[s] * k.price[s]
		room -= share[s] * k.cpu[s]
		if room <= 0 {
			break
		}
	}
	return value, share
}
