// Package plan owns the placement problem that every method is given and the plan that
// it returns: which device runs each op, in which order, and which ops are fused. It
// has the plan's checks and its file.
package plan
