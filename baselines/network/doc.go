// Package network owns what graph partitioners are given: the units of a graph as
// vertices that weigh their compute, and what two units exchange as an edge that
// weighs the time to move it. Direction, order and time itself are lost.
package network
