package sim

import (
	"placer/graph"
	"placer/internal/unionfind"
)

// split looks at each connected part of the graph. Either one device runs the
// whole part, one op after the other, or some dependency crosses devices. In the
// latter case, with u before v, the time is at least what comes before u, u
// itself, the fastest transfer of the bytes between any two devices, v and what
// comes after v. The part takes at least the lesser of the two; the first is ruled
// out on devices that cannot hold its resident bytes. It returns false if a part
// can be run neither way.
func (b *bounder) split() (seconds float64, possible bool) {
	part := b.components()
	whole := map[int32]*boundItem{}
	crossing := map[int32]float64{}
	routes := b.distinctRoutes()
	for i, c := range part {
		if whole[c] == nil {
			whole[c] = &boundItem{seconds: make([]float64, len(b.classes))}
			crossing[c] = inf
		}
		x := whole[c]
		x.resident += float64(b.g.Op(graph.OpID(i)).Resident)
		for k, class := range b.classes {
			x.seconds[k] += b.seconds[class.device][i]
		}
		b.predecessors(i, func(p graph.OpID, bytes int64) {
			transfer := inf
			for k := range routes {
				transfer = min(transfer, routes[k].seconds(bytes))
			}
			crossing[c] = min(crossing[c], b.head[p]+b.fastest[p]+transfer+b.fastest[i]+b.tail[i])
		})
	}
	for _, c := range part {
		x := whole[c]
		if x == nil {
			continue
		}
		delete(whole, c) // each part once, in order of its first op
		one := inf
		for k, class := range b.classes {
			if !b.cfg.Memory || x.resident <= class.memory {
				one = min(one, x.seconds[k])
			}
		}
		if one == inf && crossing[c] == inf {
			return 0, false
		}
		seconds = max(seconds, min(one, crossing[c]))
	}
	return seconds, true
}

// distinctRoutes returns one route of each pair of latency and bandwidth.
func (b *bounder) distinctRoutes() (rs []route) {
	seen := map[[2]float64]bool{}
	for k, r := range b.routes {
		if key := [2]float64{r.latency, r.bandwidth}; k/b.d != k%b.d && !seen[key] {
			seen[key] = true
			rs = append(rs, r)
		}
	}
	return rs
}

// components returns, [N], the first op of each op's connected part.
func (b *bounder) components() []int32 {
	parts := unionfind.New(b.n)
	for i := range parts {
		b.predecessors(i, func(p graph.OpID, _ int64) { parts.Join(int32(p), int32(i)) })
	}
	for i := range parts {
		parts[i] = parts.Root(int32(i))
	}
	return parts
}
