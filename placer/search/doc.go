// Package search owns the search of one problem by many methods within one budget: who
// runs when and with what share, what each came to under the same judge, and the run
// folder, which survives a kill and from which a search goes on.
//
// Baselines place first, so that within seconds there is a plan. The rest of the budget
// is divided between searches and policies by their weights; each has its own evaluator
// and its own random stream, so that one seed and one budget in evaluations give one
// plan. Last, the best is polished. No result is worse than the best of the baselines.
package search
