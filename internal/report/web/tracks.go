package web

import (
	"cmp"
	"slices"

	"placer/units"
)

// track adds a track of these spans, by start.
func (p *payload) track(name string, device int, items []uint32) {
	slices.SortStableFunc(items, func(a, b uint32) int { return cmp.Compare(p.times[2*a], p.times[2*b]) })
	p.header.Tracks = append(p.header.Tracks, headerTrack{name, device, len(items)})
	p.items = append(p.items, items...)
}

// busiest returns the links that carry something, at most mostLinks of them, in the
// machine's order.
func busiest(busy []units.Seconds, links [][]uint32) (chosen []int) {
	for l := range links {
		if len(links[l]) > 0 {
			chosen = append(chosen, l)
		}
	}
	slices.SortStableFunc(chosen, func(a, b int) int { return cmp.Compare(busy[b], busy[a]) })
	chosen = chosen[:min(len(chosen), mostLinks)]
	slices.Sort(chosen)
	return chosen
}

// mostSpans is how many spans a page carries: more than that many are joined where no
// eye can part them.
const mostSpans = 400_000

// join makes one of spans of a track that follow each other with hardly a pause, until
// there are at most mostSpans. Their time stays exact where they do not pause; their
// sizes add up.
func (p *payload) join(most int) {
	pause := 0.0
	for len(p.ops) > most {
		if pause *= 2; pause == 0 {
			pause = p.header.StepTime / (1 << 20)
		}
		p.joinBy(pause)
		if pause > p.header.StepTime {
			return
		}
	}
	p.header.Joined, p.header.Spans = pause, len(p.ops)
}

// joinBy joins the spans of each track of devices, and transfers of each pair of
// devices, whose pauses are at most so long.
func (p *payload) joinBy(pause float64) {
	into := make([]uint32, len(p.ops)) // the span that each is now part of, by its new number
	order := make([]uint32, len(p.ops))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortStableFunc(order, func(a, b uint32) int { return cmp.Compare(p.times[2*a], p.times[2*b]) })
	type row [4]uint8
	last := map[row]uint32{}
	var q payload
	for _, i := range order {
		k := p.kinds[4*i : 4*i+4]
		key := row{k[0], k[1] &^ spanCritical, k[2], k[3]}
		if j, ok := last[key]; ok && p.times[2*i]-q.times[2*j+1] <= pause {
			q.times[2*j+1] = max(q.times[2*j+1], p.times[2*i+1])
			q.sizes[j] += p.sizes[i]
			q.kinds[4*j+1] |= k[1] & spanCritical
			into[i] = j
			continue
		}
		j := uint32(len(q.ops))
		q.times = append(q.times, p.times[2*i], p.times[2*i+1])
		q.sizes, q.ops, q.kinds = append(q.sizes, p.sizes[i]), append(q.ops, p.ops[i]), append(q.kinds, k...)
		last[key], into[i] = j, j
	}
	at := 0
	for k := range p.header.Tracks {
		t := &p.header.Tracks[k]
		var items []uint32
		seen := map[uint32]bool{}
		for _, i := range p.items[at : at+t.Items] {
			if j := into[i]; !seen[j] {
				seen[j] = true
				items = append(items, j)
			}
		}
		at += t.Items
		t.Items = len(items)
		q.items = append(q.items, items...)
	}
	p.times, p.sizes, p.ops, p.kinds, p.items = q.times, q.sizes, q.ops, q.kinds, q.items
}
