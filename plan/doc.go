// Package plan owns the answer to a placement problem: which device runs each
// op and in which priority, the checks that make a plan valid for a graph and a
// machine, its file form, and the interface that every method implements.
package plan
