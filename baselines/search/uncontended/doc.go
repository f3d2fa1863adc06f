// Package uncontended owns the search for placements where transfers never wait
// for one another and devices run their ready ops first come first served: the
// model that DOPPLER (ICLR 2026) trains on.
//
// Without contention a step needs no event loop. An op is ready when the last of
// its inputs is there, each at its producer's end or, from another device, its
// transfer's time later. Taking ops in order of (ready, id) from a heap and
// starting each when its device is free is first come first served: whatever
// becomes known later is ready later. That is some microseconds for a graph of
// 200 ops, and equals the simulator's answer bit for bit.
//
// The search anneals op by op, from a placement that keeps what shares heavy
// tensors together. A move takes an op, alone or with the ops that feed it alone,
// to another device, mostly to one where a neighbour is.
package uncontended
