// Package nntest owns the conformance tests of the learning engine: an operation
// is compared, forward and backward, with a plain implementation in float64.
//
// Run checks every operation of package nn on one backend. Check does the same
// for an operation of another package.
package nntest
