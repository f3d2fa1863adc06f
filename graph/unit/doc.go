// Package unit groups the ops of a graph into units of decision: sets of ops
// that a placement method moves together, at several granularities, each nested
// in the next coarser one. Units are found by structure (co-location groups,
// variables and the gradients that update them, single consumers, repeated
// subgraphs), never by op names.
package unit
