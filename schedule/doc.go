// Package schedule owns the parts that list schedulers, partitioners and policies
// share: coarsened graphs, ranks by the longest path, and the timelines of devices and
// links. A tensor's arrival depends on what else its links carry; communication graphs
// hold what units exchange.
package schedule
