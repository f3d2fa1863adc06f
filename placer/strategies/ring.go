package strategies

import (
	"placer/graph/strategy"
	"placer/hw"
)

// ring returns how long c takes as a ring, by the quickest protocol. All-to-alls within a host are
// taken for as long as an all-gather.
func (f *fabric) ring(c strategy.Collective) float64 {
	return f.quickest(func(p protocol) float64 { return f.ringBy(p, c) })
}

// ringBy is ring by one protocol.
func (f *fabric) ringBy(p protocol, c strategy.Collective) float64 {
	base := microseconds{6.6, 14, 8.4} // baseLatencies
	hop := microseconds{0.6, 1.9, 3.4} // hwLatencies
	if f.medium == hw.PCIe {
		hop = microseconds{1, 2.5, 5.7}
	}
	steps, between := c.Kind.Steps(f.ranks), 0
	wait := hop.seconds(p)
	if p == simple {
		wait = max(wait, f.send) // a step is a send, whose latency the machine tells
	}
	across := 0.0
	if f.hosts > 1 {
		between = c.Kind.Steps(f.hosts)
		across = microseconds{2.7, 4, 14}.seconds(p)
		if f.local() == 1 { // nothing hides the network's latency
			across = microseconds{5, 8.5, 14}.seconds(p)
		}
		wait = max(wait, microseconds{1, 1, 3}.seconds(p)) // getNetOverhead, of an Intel CPU
	}
	latency := base.seconds(p) + float64(steps-between)*wait + float64(between)*across
	rate := f.rate()
	switch p {
	case ll:
		rate = min(rate/2, llMost(f.arch, f.hosts))
	case ll128:
		rate *= 0.92
	case simple:
		if f.hosts > 1 && c.Kind == strategy.AllReduce {
			latency *= 1.4 // "plateau effect of ring"
		}
	}
	return latency + float64(c.Sent())/rate
}
