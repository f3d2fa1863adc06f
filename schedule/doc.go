// Package schedule owns what list schedulers, partitioners and policies share: the
// timelines of devices and links, the arrivals of tensors over links that others
// use too, ranks by the longest path, the graph of what units exchange, and the
// coarsened graph that schedules are made of.
package schedule
