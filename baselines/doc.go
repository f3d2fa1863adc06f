// Package baselines holds the methods that the learned policies are measured
// against, a package each: rules of thumb, partitioners, list schedulers, searches,
// exact solvers, the learned policies of earlier papers, and REGAL with its rivals.
//
// Package placer/methods lists them by name, docs/baselines.md says where each comes
// from and how it departs from its source, and baselines/conformance is the suite of
// tests that all of them pass.
package baselines
