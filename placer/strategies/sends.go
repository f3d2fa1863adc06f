package strategies

import "placer/graph/strategy"

// sends returns how long an all-to-all between hosts takes: NCCL has no collective for it, a rank sends
// to each other by itself. What stays on a host and what leaves it go at once, by links of their own;
// what leaves goes by the rank's own share of the NICs, which an all-to-all cannot pool (NVIDIA/nccl-tests,
// issues 130 and 267). Each send to another host is started by itself, which costs what the network
// does in NCCL's model (getNetOverhead).
func (f *fabric) sends(c strategy.Collective) float64 {
	part := float64(c.Sent()) / float64(f.ranks-1) // to each other rank
	near, far := f.local()-1, f.ranks-f.local()
	within := 0.0
	if near > 0 {
		within = part * float64(near) / f.bus
	}
	const base, across, start = 8.4e-6, 14e-6, 3e-6 // of ringBy, in simple
	return base + across + float64(far-1)*start + max(within, part*float64(far)*float64(f.local())/f.wire)
}
