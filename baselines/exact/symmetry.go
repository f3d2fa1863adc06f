package exact

import "slices"

// classify finds for each device the lowest that may be exchanged with it.
// Exchanges within a class make up all of the class's permutations, so of the
// placements that differ by these only the one is tried in which the devices of a
// class come into use in ascending order.
func (t *table) classify() {
	t.classes = make([]int, t.d)
	for v := range t.d {
		t.classes[v] = v
		for w := range v {
			if t.classes[w] == w && t.exchangeable(w, v) {
				t.classes[v] = w
				break
			}
		}
	}
}

// exchangeable reports whether every plan takes as long when devices v and w are
// exchanged: equal op times and memory, routes of equal figures that share links in
// the same way, and, where the routes from one device share a link, no other order
// of receivers, which is the order in which a message goes out.
func (t *table) exchangeable(v, w int) bool {
	if t.p.Machine.Devices[v].Memory != t.p.Machine.Devices[w].Memory || !slices.Equal(t.seconds[v], t.seconds[w]) {
		return false
	}
	to := func(a int) int {
		switch a {
		case v:
			return w
		case w:
			return v
		}
		return a
	}
	link := map[int32]int32{}
	back := map[int32]int32{}
	for a := range t.d {
		for b := range t.d {
			if a == b {
				continue
			}
			x, y := &t.routes[a*t.d+b], &t.routes[to(a)*t.d+to(b)]
			if t.p.Machine.EndCosts(a, b) != t.p.Machine.EndCosts(to(a), to(b)) || x.latency != y.latency || x.bandwidth != y.bandwidth || len(x.links) != len(y.links) {
				return false
			}
			for k, l := range x.links {
				m := y.links[k]
				if other, ok := link[l]; ok && other != m {
					return false
				}
				if other, ok := back[m]; ok && other != l {
					return false
				}
				link[l], back[m] = m, l
			}
			for c := b + 1; c < t.d; c++ {
				if c != a && to(b) > to(c) && slices.ContainsFunc(x.links, func(l int32) bool { return slices.Contains(t.routes[a*t.d+c].links, l) }) {
					return false
				}
			}
		}
	}
	return true
}

// open reports whether device v may be used next: all lower ones of its class are
// in use.
func (t *table) open(v int, used []int) bool {
	for w := range v {
		if t.classes[w] == t.classes[v] && used[w] == 0 {
			return false
		}
	}
	return true
}
