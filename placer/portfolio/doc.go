// Package portfolio owns the search of one problem by several methods that share one
// budget by what they bring: each starts from nothing or from the best of all, and time
// goes to those that lately improved the best plan most.
//
// The files in the order of the algorithm: placer.go has the parameters and the loop, run.go a
// round, choose.go the arm of each walker, pull.go a run of an arm, arm.go what an arm is and
// what it has earned.
package portfolio
