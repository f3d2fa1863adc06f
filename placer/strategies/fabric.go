package strategies

import (
	"math"
	"strconv"
	"strings"

	"placer/graph/strategy"
	"placer/hw"
)

// fabric is what joins the ranks of a group, as NCCL finds it: hosts of as many ranks each, alike.
type fabric struct {
	ranks, hosts int
	arch         int     // compute capability of the GPUs: 90 is 9.0
	medium       string  // within a host; "" where each has one rank
	bus          float64 // B/s that a rank sends to another of its host; 0 where each has one
	send         float64 // s, the latency of a send within a host
	sharp        bool    // the switch within a host adds up
	wire         float64 // B/s that the ranks of a host send to the next host, together; 0 on one host
	launch       float64 // s, of the kernel
}

// fabricOf returns the fabric of the groups of m that run a collective like c at once, false where
// links do not say what they are of, or where groups, hosts or pairs of ranks differ.
func (j *Judge) fabricOf(m strategy.Mesh, c strategy.Collective) (f fabric, ok bool) {
	key := ringKey{m, strategy.Collective{Axis: c.Axis, Ranks: c.Ranks, Stage: c.Stage, Stages: c.Stages}}
	f, ok = j.fabrics[key]
	if !ok {
		if f, ok = j.fabricOfGroups(m.Groups(c)); !ok {
			f = fabric{}
		}
		j.fabrics[key] = f
	}
	return f, f.ranks > 0
}

func (j *Judge) fabricOfGroups(groups [][]int) (f fabric, ok bool) {
	if len(groups) == 0 || len(groups[0]) < 2 {
		return f, false
	}
	senders, receivers := j.users(groups)
	for k, g := range groups {
		of, ok := j.fabricOfGroup(g, senders, receivers)
		if !ok || k > 0 && of != f {
			return f, false
		}
		f = of
	}
	return f, true
}

// alike reports whether all ranks of a stage of s do the same at the same time though pairs of devices
// differ: what they send to another stage goes over links of their own, and each group of ranks
// communicates in collectives of NCCL's, which take all groups as long.
func (j *Judge) alike(s strategy.Strategy) bool { return j.unlike(s) == "" }

// unlike says why ranks are not alike, empty where they are.
func (j *Judge) unlike(s strategy.Strategy) string {
	for _, d := range j.Machine.Devices {
		if !d.SameFigures(&j.Machine.Devices[0]) {
			return "devices differ"
		}
	}
	groups := []strategy.Collective{{Axis: strategy.DataAxis, Ranks: s.Data}, {Axis: strategy.TensorAxis, Ranks: s.Tensor}}
	if s.Experts > 0 {
		groups = append(groups, strategy.Collective{Axis: strategy.ExpertAxis, Ranks: s.Experts}, strategy.Collective{Axis: strategy.ReplicaAxis, Ranks: s.Data / s.Experts})
	}
	if s.Context > 0 {
		groups = append(groups, strategy.Collective{Axis: strategy.TokenAxis, Ranks: s.Context})
	}
	for _, c := range groups {
		for c.Stage = 0; c.Stage < s.Pipeline && c.Ranks > 1; c.Stage++ {
			if _, ok := j.fabricOf(s.Mesh, c); !ok {
				return "groups of ranks that communicate are joined by different links, or by links of no known kind"
			}
		}
	}
	if s.Pipeline > 1 && !j.apart(s.Mesh) {
		return "ranks of a stage send to the next over links that differ or are shared, as where GPUs of a host share a network card"
	}
	return ""
}

// apart reports whether what ranks of m send to the stages beside theirs takes all of a stage as long
// and shares no links with what others of the stage send.
func (j *Judge) apart(m strategy.Mesh) bool {
	width := m.Data * m.Tensor
	part := map[int32]int{} // of a link: the place in its stage of the ranks that send over it
	for stage := range m.Pipeline {
		for _, other := range []int{stage + 1, stage + m.Pipeline - 1} { // gradients go back
			first := m.Rank(0, stage, 0)
			to := m.Rank(0, other%m.Pipeline, 0)
			latency, bandwidth := j.Machine.Transfer(first, to)
			for k := range width {
				if l, b := j.Machine.Transfer(first+k, to+k); l != latency || b != bandwidth {
					return false
				}
				for _, l := range j.Machine.Route(first+k, to+k) {
					if of, ok := part[l]; ok && of != k {
						return false
					}
					part[l] = k
				}
			}
		}
	}
	return true
}

// users returns how many ranks send over each link to others of their group, and how many receive.
func (j *Judge) users(groups [][]int) (senders, receivers []int) {
	count := func(route func(rank, other int) []int32) []int {
		n, last := make([]int, len(j.Machine.Links)), make([]int, len(j.Machine.Links))
		for _, g := range groups {
			for _, rank := range g {
				for _, other := range g {
					for _, l := range route(rank, other) {
						if last[l] != rank+1 {
							n[l], last[l] = n[l]+1, rank+1
						}
					}
				}
			}
		}
		return n
	}
	return count(j.Machine.Route), count(func(to, from int) []int32 { return j.Machine.Route(from, to) })
}

// fabricOfGroup returns the fabric of one of the groups.
func (j *Judge) fabricOfGroup(g []int, senders, receivers []int) (f fabric, ok bool) {
	first := &j.Machine.Devices[g[0]]
	for _, r := range g {
		if !j.Machine.Devices[r].SameFigures(first) {
			return f, false
		}
	}
	hosts := j.hosts(g)
	for k, h := range hosts {
		of, ok := j.inside(h, senders, receivers)
		if !ok || len(h) != len(hosts[0]) || k > 0 && of != f {
			return f, false
		}
		f = of
	}
	f.ranks, f.hosts, f.arch, f.launch = len(g), len(hosts), capability(first.Arch), float64(first.Launch)
	if f.hosts == 1 {
		return f, f.arch > 0
	}
	for k, h := range hosts {
		wire := j.between(h, hosts[(k+1)%f.hosts], senders, receivers)
		if k > 0 && math.Abs(wire/f.wire-1) > 1e-9 {
			return f, false
		}
		f.wire = wire
	}
	return f, f.arch > 0
}

// inside returns what joins the ranks of a host, false where pairs of them differ.
func (j *Judge) inside(host []int, senders, receivers []int) (f fabric, ok bool) {
	for k, a := range host {
		for l, b := range host {
			if a == b {
				continue
			}
			of, ok := j.within(a, b, host, senders, receivers)
			if !ok || (k > 0 || l > 1) && of != f {
				return f, false
			}
			f = of
		}
	}
	return f, true
}

// hosts divides ranks into those that reach one another without a network.
func (j *Judge) hosts(g []int) (hosts [][]int) {
next:
	for _, r := range g {
		for k, h := range hosts {
			if !j.crosses(h[0], r) {
				hosts[k] = append(h, r)
				continue next
			}
		}
		hosts = append(hosts, []int{r})
	}
	return hosts
}

// crosses reports whether the route from a to b has a link between hosts.
func (j *Judge) crosses(a, b int) bool {
	for _, l := range j.Machine.Route(a, b) {
		if j.Machine.Links[l].Medium.Medium == hw.Between {
			return true
		}
	}
	return false
}

// within returns what joins a to b in a host of ranks: links of one medium, over which nobody else
// sends to others, the first of them a's own to all.
func (j *Judge) within(a, b int, host []int, senders, receivers []int) (f fabric, ok bool) {
	route := j.Machine.Route(a, b)
	f = fabric{medium: j.Machine.Links[route[0]].Medium.Medium, bus: math.Inf(1), sharp: true}
	for _, l := range route {
		x := &j.Machine.Links[l]
		if x.Medium.Medium != f.medium || senders[l] > 1 && receivers[l] > 1 {
			return f, false
		}
		rate := x.Bandwidth
		if x.CollectiveBandwidth > 0 {
			rate = x.CollectiveBandwidth
		}
		f.bus, f.sharp = min(f.bus, float64(rate)), f.sharp && x.Sharp
	}
	for _, c := range host { // in a mesh NCCL has rings over different links, which is not modelled
		if c != a && j.Machine.Route(a, c)[0] != route[0] {
			return f, false
		}
	}
	latency, _ := j.Machine.Transfer(a, b)
	f.send = float64(latency)
	return f, f.medium != ""
}

// between returns what the ranks of a host send to those of the next, each to that of its place,
// where ranks share links with others that send at once.
func (j *Judge) between(host, next []int, senders, receivers []int) (sum float64) {
	for i, a := range host {
		share := math.Inf(1)
		for _, l := range j.Machine.Route(a, next[i]) {
			share = min(share, float64(j.Machine.Links[l].Bandwidth)/float64(min(senders[l], receivers[l])))
		}
		sum += share
	}
	return sum
}

// capability returns the compute capability of an architecture, 90 of sm_90; 0 where there is no
// NCCL.
func capability(arch string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(arch, "sm_"))
	if err != nil {
		return 0
	}
	return n
}
