// Package gputest owns the conformance suite of gpu.Driver and gpu.BLAS: what
// every binding and every fake must do, checked in the same words for all of
// them, on a real GPU as on a pretended one.
package gputest
