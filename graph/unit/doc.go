// Package unit groups the ops of a graph into units of decision: sets of ops
// that a placement method moves together, at several granularities, each nested
// in the next coarser one. Units are found by structure (co-location groups,
// variables and the gradients that update them, single consumers, repeated use
// of a variable), never by op names.
//
// Find works in steps, a file each:
//
//   - families.go: a variable, its views, its updates, and the ops that exist for
//     its gradient alone (the weight-gradient products of every unrolled step and
//     their sum) are one family. Placing them apart would send gradients of the
//     variable's size between devices.
//   - cells.go: the rest of the forward pass is cut at its products, convolutions
//     and pools. An op belongs to the cell of its latest operand, unless it joins
//     cells that do not follow each other; what only prepares a product's operand
//     belongs to that product. A backward op belongs to the counterpart of the cell
//     whose gradient it computes; without that annotation the backward pass is cut
//     like the forward pass, in reverse.
//   - chains.go: cells that read the same variable form a chain: a layer of a
//     recurrent network. Cells that are alone with theirs (convolutional networks,
//     Transformers) are cut, in order, into stretches of even weight where the
//     fewest bytes cross (stretch.go).
//   - apart.go: an op that does work and has no edges is a cell of its own.
//   - segments.go: runs of consecutive cells of a chain; in a stretch, branches.
//
// WithPartialGradients (partial.go) then takes apart what each of a few heavy uses
// of a variable adds to its gradient: a method that weighs what is sent gains from
// deciding these products by themselves.
//
// Letters: N ops, U units of one level.
package unit
