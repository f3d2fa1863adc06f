// Package phase owns the specialised solver of REGAL's run-time task.
//
// Where transfers block and take no time, a schedule is a sequence of phases.
// Between two phases all devices meet and exchange tensors; within one they run
// on their own. So
//
//	run time = Σ over phases of the largest load of a device,
//
// an edge between devices needs phase(u) < phase(v), and an edge within a device
// phase(u) <= phase(v). Nothing else matters: neither the order within a phase
// nor that of the transfers. A move of one op changes two phases' loads, and
// whether it is allowed follows from its neighbours: O(degree).
//
// Control dependencies between devices are held to the same rule, though the
// model lets their consumers run in the same phase. The result is scored by the
// model itself, so its run time can only be lower than the sum. Ops that take no
// time and follow, or precede, only such ops (source, sink) run before the first
// phase and behind the last.
//
// The bound is sched.Problem.LowerBound: no schedule is shorter. The search stops
// when it is reached.
//
// Letters: n ops in phases, K phases, D devices.
package phase
