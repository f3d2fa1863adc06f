// Package plan owns the question that every method is asked and the answer that it
// gives: the placement problem; and the plan, which says which device runs each op,
// in which order, and which ops are fused, with its checks and its file.
package plan
