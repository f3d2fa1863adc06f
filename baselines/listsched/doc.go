// Package listsched owns the list schedulers: methods that visit the nodes of a
// graph in an order, or as they get ready, and give each, as they go, the device that
// suits it best in the schedule so far.
//
// Rules (rules.go) is our own: nodes of units by falling upward rank; the first visit
// of a unit decides for all its nodes.
//
// HEFT (Topcuoglu, Hariri, Wu: IEEE TPDS 13(3), 2002; heft.go) takes ops by falling
// upward rank, each to the device that ends it first, into an idle gap if one fits.
// ETF (Hwang, Chow, Anger, Lee: SIAM J. Comput. 18(2), 1989; etf.go) takes always the
// pair of ready op and device with the earliest start. Both decide at op level, as
// published, or on units: on chains, segments and cells in turn, the best placement
// kept (onunits.go). At op level they scatter the products that make up a weight's
// gradient, and then move gradients of the weight's size between devices; on units a
// weight, its gradient and its update stay together, and so do a cell and the cell
// that computes its gradients. Departures from the papers, which know neither links
// nor memory nor co-location:
//
//   - A transfer needs a gap on every link of its route.
//   - A device whose estimated memory would overflow is not offered, while another
//     has room. The estimate follows the order of decisions, not time, so the
//     placement can still overflow.
//   - The first op placed of a co-location group fixes the others.
//   - What the step starts with (variables, constants, inputs, and views of them)
//     is placed with its first consumer: it is ready everywhere at once, and the
//     papers' rules would put all of it on the first device.
//
// Baechi (Jeon et al., SoCC 2020; baechi.go) places by rule under a limit of memory:
//
//   - m-TOPO: ops in topological order fill one device after the other, each up to
//     an even share of the memory plus the largest op's (baechi_topo.go).
//   - m-ETF: always the ready op and device with the earliest start, among devices
//     that have room (baechi_etf.go).
//   - m-SCT: m-ETF in which every op has at most one favourite child, which should
//     follow it on its device; a device that has just run an op waits for that
//     child as long as a transfer would take, but for ops that could start anywhere
//     (baechi_sct.go). Favourites come from the linear program of Hanen and Munier
//     (favourite.go): exactly, by the simplex method, on small graphs; by smoothed
//     subgradients on larger ones, where a dense simplex would take hours.
//
// Departures from that paper:
//
//   - It shrinks graphs by fusing ops and by placing forward ops and their gradients
//     together; here that is the coarsening of the graph to cells, with a cell and
//     the cell of its gradients bound together. Co-location groups lie within cells.
//   - Transfers wait for the links of their route, as the simulator has it, instead
//     of for one queue per device.
//   - Memory is estimated as if all that a node gives to others stayed. Where the
//     simulator, which counts exactly, still finds a device overflowing, the
//     placement is made again for devices of less memory.
//   - Variables are placed with their first reader.
package listsched

import (
	"context"

	"placer/plan"
)

// placing is what a method does under its name.
type placing func(ctx context.Context, p *plan.Problem, name string) (*plan.Outcome, error)

// method is a list scheduler under its name.
type method struct {
	name  string
	place placing
}

func (m method) Name() string  { return m.name }
func (method) Kind() plan.Kind { return plan.Baseline }

func (m method) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	return m.place(ctx, p, m.name)
}
