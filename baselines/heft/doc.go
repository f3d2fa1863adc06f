// Package heft owns the two classic list schedulers that choose a device for
// each op as they go:
//
//   - HEFT (Topcuoglu, Hariri, Wu: IEEE TPDS 13(3), 2002): ops by falling upward
//     rank, each to the device that ends it first, into an idle gap if one fits.
//   - ETF (Hwang, Chow, Anger, Lee: SIAM J. Comput. 18(2), 1989): always the pair
//     of ready op and device with the earliest start.
//
// Both decide at op level, as published, or on units: on chains, segments and
// cells in turn, the best placement kept (cells.go). At op level they scatter the
// products that make up a weight's gradient, and then move gradients of the
// weight's size between devices; on units a weight, its gradient and its update
// stay together, and so do a cell and the cell that computes its gradients.
// Departures from the papers, which know neither links
// nor memory nor co-location:
//
//   - A transfer needs a gap on every link of its route.
//   - A device whose estimated memory would overflow is not offered, while another
//     has room. The estimate follows the order of decisions, not time, so the
//     judged placement can still overflow.
//   - The first op placed of a co-location group fixes the others.
//   - What the step starts with (variables, constants, inputs, and views of them)
//     is placed with its first consumer: it is ready everywhere at once, and the
//     papers' rules would put all of it on the first device.
package heft
