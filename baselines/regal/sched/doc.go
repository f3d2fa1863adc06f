// Package sched owns the scheduling problem of REGAL (Paliwal et al., ICLR 2020,
// A.4): ops and tensors placed on equal devices whose transfers are synchronous,
// and what a placement with a schedule costs.
//
// # The model
//
// A placement gives every op a device. A tensor that is needed on another device
// gets a transfer to it. A schedule is a total order of ops and transfers. They
// are stepped through in that order: an op takes its time on its device; a
// transfer waits until its sender and its receiver have ended what precedes it in
// the order, and holds both for size/bandwidth. A tensor is in a device's memory
// from the op or transfer that brings it there until the last op or transfer
// there that reads it has run; while an op runs, its inputs and its outputs are
// both there. The peak is the most that any device holds at any time.
//
// # Which reading
//
// The paper calls control dependencies tensors of size zero and leaves open what
// they do between devices. Three readings are possible: they block like data;
// nothing blocks and all transfers only order; or data blocks and control only
// orders. This package takes the third: a control dependency across devices
// makes its consumer start no earlier than its producer has ended, and makes no
// device wait beyond that. It alone leads to the gaps that the paper prints.
//
// # Why this is no option of package sim
//
// There a transfer runs beside the ops of both its devices, and events decide
// the order. Here both devices stand still and the order is given. A blocking
// transfer between event queues would be a third discipline in the innermost
// loop of sim, for every user of it, to compute what one pass over a list gives.
//
// Letters: N ops, T tensors (control included), D devices. Times and sizes have
// the units of the problem's source: microseconds and bytes in CostGraphDef.
package sched
