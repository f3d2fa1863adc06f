// Package sim owns the prediction of a plan's step time and memory: a
// discrete-event simulator, the full result of a run with its critical path and
// trace, and proven lower bounds.
//
// What time means (docs/adr/0002-meaning-of-time.md has the reasons):
//
// A device runs one op at a time, without preemption. Of its ready ops the one
// of the lowest priority value runs first; without priorities, the one ready
// first, then the lower id.
//
// When an op ends it emits messages: one for each output that has consumers, by
// tensor id, then one of zero bytes if ops wait for it by control dependency. A
// message goes once to every other device that has a consumer, in ascending
// order of device. Such a transfer holds every link of its route from its start
// to its end, for the sum of the links' latencies plus bytes over the lowest
// bandwidth; it starts when the last of the links is free. Links serve transfers
// in the order in which they became ready; at one instant, the lower producing
// op first, then the order above. Transfers overlap computation.
//
// On machines whose transfers occupy the sender, other rules hold in place of this
// paragraph: see copies.go.
//
// Memory is counted in whole bytes. Resident bytes of ops count on their device
// throughout. An output is allocated when its op starts and freed when its last
// local consumer and its last outgoing transfer have ended, at its op's end if it
// has neither. Tensors marked resident occupy nothing on their producer's device.
// Nor do views (reshapes, identities: fuse.Views): what a view is of stays on its
// device until the view's last consumer and transfer have ended too. (A view of what
// its kernel keeps to itself is an output like any other.)
// A received tensor is allocated when its transfer starts and freed when its last
// consumer on that device has ended. Workspace lives while the op runs. At one
// instant all frees precede all allocations.
//
// Every op and every transfer takes a positive time, so what happens on one
// device at an instant cannot influence another device at that instant. (A
// duration below 2^-53 of the clock vanishes in it; the run still ends, but ties
// with it are then broken by the order of processing.)
//
// Making an op faster can make a step longer; no caller may assume otherwise.
//
// Letters: N ops, D devices, L links.
package sim
