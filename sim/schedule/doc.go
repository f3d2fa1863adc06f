// Package schedule owns the schedule file, `placer schedule 1` (docs/pytorch.md): the
// ops of a simulated step by name, with their devices, in the order in which they are
// issued, for runtimes that run a plan without a simulator.
package schedule
