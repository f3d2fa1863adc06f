// Package listsched owns critical-path list scheduling on units: the graph is
// contracted to units (chains, segments or cells), nodes are visited by falling
// upward rank, and the first visit of a unit decides its device, for all its
// nodes, by when the node would end there and by how much work the device would
// have.
//
// It is HEFT (Topcuoglu, Hariri, Wu, 2002) with these differences: decisions are
// per unit; transfers wait for the links of their route; there is no insertion
// into gaps; a device whose memory the unit would overflow is not offered while
// another has room; variables wait for their first reader, because they are ready
// everywhere; and several rules are tried, of which the best result is kept.
package listsched
