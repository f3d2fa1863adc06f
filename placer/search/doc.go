// Package search owns the search of one problem by many methods within one budget: who
// runs when and with what share, what each came to under the same judge, and the run
// folder, which survives a kill and from which a search goes on.
//
// Baselines place first, so that within seconds there is a plan. By default the rest of
// the budget is that of one method, the portfolio, which divides it between searches and
// policies by what they bring. Methods that are named have a share each by their weights
// instead. So have all where steps are measured or a policy's network is on a device; then
// the best is polished last. Each method has its own evaluator and its own random stream,
// so that one seed and one budget in evaluations give one plan. No result is worse than
// the best of the baselines.
//
// The files in the order of a search: config.go has what it is told, search.go the stages
// and the run of one method, queue.go who runs when and with what share. Then conclude.go
// makes the result of the rows (row.go): reference.go has what the best is held against,
// tidy.go the same plan on fewer devices and with less sent, ties.go the choice of the best,
// fewer.go searches on fewer GPUs, prefer.go plans that come from elsewhere. The run folder:
// state.go has the events and what is remembered of a killed search, run.go the files,
// runstate.go the state of each method, observe.go what is written on the way, history.go
// what of it can be read later. cputimes.go divides processor time between methods.
package search
