package hw

import (
	"container/heap"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"placer/units"
)

// A Cable joins two ends, each a device or a switch, by one link in each
// direction. Switches exist only as ends of cables: every end that is no device
// is one.
type Cable struct {
	A, B      string
	Bandwidth units.BytesPerSecond // of each direction
	Latency   units.Seconds        // of each direction
	EndCosts
	Medium
	Source string
}

// routeBytes is the message that Connect routes for: large enough that a fast
// direct link wins over a slow one of lower latency.
const routeBytes units.Bytes = 1 << 20

// Connect fills Links and Routes from cables: link 2k leads from A to B of
// cable k ("A>B"), link 2k+1 back. The route of a pair of devices is the path
// whose links take least time in sum for routeBytes each; among equals the one of
// fewest links, then of the lower last link. A path goes through switches; devices that
// no such path joins meet in a CPU that is cabled to both, through whose memory copies go
// then. Pairs that no path joins keep an empty route, which Check reports.
func (m *Machine) Connect(cables []Cable) error {
	node := map[string]int{} // devices first, then switches as they occur
	for i, v := range m.Devices {
		node[v.Name] = i
	}
	type arc struct{ to, link int }
	arcs := make([][]arc, len(m.Devices))
	id := func(name string) int {
		if _, ok := node[name]; !ok {
			node[name] = len(arcs)
			arcs = append(arcs, nil)
		}
		return node[name]
	}
	m.Links = m.Links[:0]
	for k, c := range cables {
		if c.A == c.B || c.A == "" || c.B == "" {
			return fmt.Errorf("cable %d joins %q to %q, want two different ends", k, c.A, c.B)
		}
		a, b := id(c.A), id(c.B)
		arcs[a] = append(arcs[a], arc{b, len(m.Links)})
		m.Links = append(m.Links, Link{Name: c.A + ">" + c.B, Bandwidth: c.Bandwidth, Latency: c.Latency, EndCosts: c.EndCosts, Medium: c.Medium, Source: c.Source})
		arcs[b] = append(arcs[b], arc{a, len(m.Links)})
		m.Links = append(m.Links, Link{Name: c.B + ">" + c.A, Bandwidth: c.Bandwidth, Latency: c.Latency, EndCosts: c.EndCosts, Medium: c.Medium, Source: c.Source})
	}

	d, n := len(m.Devices), len(arcs)
	m.Routes = make([][]int32, d*d)
	// Dijkstra from each device. forwards says which devices copies may pass through.
	from := func(s int, forwards func(v int) bool) {
		best := make([]label, n)
		done := make([]bool, n)
		seen := make([]bool, n)
		seen[s] = true
		queue := labels{{node: s}}
		for len(queue) > 0 {
			at := heap.Pop(&queue).(label)
			if done[at.node] { // by a better way
				continue
			}
			done[at.node] = true
			if at.node < d && at.node != s && !forwards(at.node) {
				continue
			}
			for _, a := range arcs[at.node] {
				l := &m.Links[a.link]
				x := label{a.to, at.seconds + l.Latency + routeBytes.Over(l.Bandwidth), at.hops + 1, a.link, at.node}
				if a.to != s && !done[a.to] && (!seen[a.to] || x.better(&best[a.to])) {
					best[a.to], seen[a.to] = x, true
					heap.Push(&queue, x)
				}
			}
		}
		for t := range d {
			if t == s || !seen[t] || m.Routes[s*d+t] != nil {
				continue
			}
			route := make([]int32, best[t].hops)
			for v, k := t, best[t].hops-1; k >= 0; v, k = best[v].from, k-1 {
				route[k] = int32(best[v].last)
			}
			m.Routes[s*d+t] = route
		}
	}
	for s := range d {
		from(s, func(int) bool { return false })
		if reached := m.Routes[s*d : (s+1)*d]; slices.ContainsFunc(reached[:s], isEmpty) || slices.ContainsFunc(reached[s+1:], isEmpty) {
			from(s, func(v int) bool { return m.Devices[v].Kind == CPU })
		}
	}
	return nil
}

// label is the best path to a node that is known so far, as Dijkstra labels nodes.
type label struct {
	node    int
	seconds units.Seconds
	hops    int
	last    int // link that arrives
	from    int // node before
}

func (x *label) better(y *label) bool {
	if x.seconds != y.seconds {
		return x.seconds < y.seconds
	}
	if x.hops != y.hops {
		return x.hops < y.hops
	}
	return x.last < y.last
}

// labels is a heap, the best first.
type labels []label

func (h labels) Len() int           { return len(h) }
func (h labels) Less(a, b int) bool { return h[a].better(&h[b]) }
func (h labels) Swap(a, b int)      { h[a], h[b] = h[b], h[a] }

// Push implements heap.Interface.
func (h *labels) Push(x any) { *h = append(*h, x.(label)) }

// Pop implements heap.Interface.
func (h *labels) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

func isEmpty(route []int32) bool { return len(route) == 0 }

// expand turns "gpu:[0-3]" into gpu:0 ... gpu:3; any other name stands for
// itself.
func expand(pattern string) ([]string, error) {
	head, rest, ok := strings.Cut(pattern, "[")
	if !ok {
		if pattern == "" {
			return nil, fmt.Errorf("a name is empty")
		}
		return []string{pattern}, nil
	}
	span, tail, closed := strings.Cut(rest, "]")
	lo, hi, isSpan := strings.Cut(span, "-")
	first, err1 := strconv.Atoi(lo)
	last, err2 := strconv.Atoi(hi)
	if !closed || !isSpan || err1 != nil || err2 != nil || first < 0 || last < first || last-first >= MaxDevices || strings.ContainsAny(tail, "[]") {
		return nil, fmt.Errorf("name %q: want a range such as gpu:[0-7], of at most %d", pattern, MaxDevices)
	}
	names := make([]string, 0, last-first+1)
	for i := first; i <= last; i++ {
		names = append(names, fmt.Sprintf("%s%d%s", head, i, tail))
	}
	return names, nil
}
