// Package features owns what a policy reads of the units of a graph, on a machine:
// named columns, and lists of neighbours.
//
// The papers (GO and GDP, section "features") give per op its type, its output
// shapes and its adjacency, with ops in topological order. A unit is a set of
// ops, so its columns are sums and means over its ops; at op granularity they
// are the op's own. Columns are transformed by fixed functions to lie near
// [-2, 2], so that one network reads graphs of any size.
//
// Letters: U units, F columns.
//
// Where to start: table.go has the columns, summary.go, levels.go and variables.go the sums
// that they are computed from, adjacency.go the lists of neighbours.
package features
