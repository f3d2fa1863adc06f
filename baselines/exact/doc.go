// Package exact owns methods for small graphs that say OPTIMAL when, and only
// when, it is proven.
//
// What is optimal: the shortest step over all plans that respect memory and
// co-location groups, that is over every placement and, with it, every permutation
// of priorities. A device of the simulator never idles while an op is ready, so
// these are all placements times all ways to choose among the ready ops whenever a
// device becomes free: whatever is chosen, the order in which the ops started is a
// permutation that makes the same choices. A schedule in which a device waits on
// purpose is not a plan, and would sometimes be shorter.
//
// Exact searches these with branch and bound:
//
//   - table.go: the problem as arrays; messages as the simulator has them.
//   - symmetry.go: devices whose exchange changes nothing are tried in one order
//     only.
//   - bound.go: lower bounds: paths with the transfers that are certain; for each
//     device and link, what must run there between the earliest start and the
//     shortest tail (the preemptive one-machine bound); work over devices.
//   - place.go: units in topological order, devices by ascending bound.
//   - dispatch.go: for a complete placement, the simulator's event loop with a
//     branch wherever a device has more than one ready op. States that were there
//     before are skipped.
//
// Every plan that would be the best is evaluated by the problem's own evaluator,
// which also counts memory. Links are as the evaluator says: queues, or free of
// contention. Under fair sharing, or should the evaluator give another time than the
// loop here, nothing is claimed but bounds that hold whatever links do. Proofs hold
// up to a relative 1e-9.
//
// CPSAT (cpsat.go) has the solver of OR-Tools look for a placement and starts
// instead, with links that take transfers in any order and devices that may wait:
// a relaxation, whose bound is valid and whose solution, as a placement and an
// order, is evaluated like any other. Where there is no such solver it runs Exact.
package exact
