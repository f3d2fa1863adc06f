// Package conformance owns the tests that every placement method must pass,
// whatever it does inside: valid plans, honest scores, determinism, budgets,
// cancellation, and truth against exhaustive search on tiny graphs.
package conformance
