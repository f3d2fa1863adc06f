// Package baechi owns the three algorithms of Baechi (Jeon et al., SoCC 2020),
// which place by rule under a limit of memory:
//
//   - m-TOPO: ops in topological order fill one device after the other, each up to
//     an even share of the memory plus the largest op's (topo.go).
//   - m-ETF: always the ready op and device with the earliest start, among devices
//     that have room (etf.go).
//   - m-SCT: m-ETF in which every op has at most one favourite child, which should
//     follow it on its device; a device that has just run an op waits for that
//     child as long as a transfer would take, but for ops that could start anywhere
//     (sct.go). Favourites come from the linear program of Hanen and Munier
//     (favourite.go): exactly, by the simplex method, on small graphs; by smoothed
//     subgradients on larger ones, where a dense simplex would take hours.
//
// Departures from the paper:
//
//   - It shrinks graphs by fusing ops and by placing forward ops and their gradients
//     together; here that is the contraction of the graph to cells, with a cell and
//     the cell of its gradients bound together. Co-location groups lie within cells.
//   - Transfers wait for the links of their route, as the simulator has it, instead
//     of for one queue per device.
//   - Memory is estimated as if all that a node gives to others stayed. Where the
//     simulator, which counts exactly, still finds a device overflowing, the
//     placement is made again for devices of less memory.
//   - Variables are placed with their first reader.
package baechi
