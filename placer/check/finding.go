package check

import (
	"cmp"
	"slices"

	"placer/units"
)

// Rule names a kind of fault.
type Rule string

// Rules that say that a placement cannot run as it stands.
const (
	UnknownDevice Rule = "unknown-device" // a device that the machine does not have
	UnknownOp     Rule = "unknown-op"     // a name that stands for no op of the graph
	Unplaced      Rule = "unplaced-op"    // an op without a device
	Colocation    Rule = "colocation"     // ops that must share a device do not
	DoesNotFit    Rule = "does-not-fit"   // a device's peak is above its memory
	Deadlock      Rule = "deadlock"       // a static order that waits for itself
)

// Rules that say that a placement takes longer than it has to.
const (
	IdleDevice Rule = "idle-device" // runs nothing
	PingPong   Rule = "ping-pong"   // a tensor goes to a device and back for little work
	LoopCut    Rule = "loop-cut"    // the time steps of a recurrent layer change devices
	FarWeights Rule = "far-weights" // parameters on a device on which nothing reads them
	Unbalanced Rule = "unbalanced"  // one device works while others wait
	SlowLink   Rule = "slow-link"   // traffic over a slow route where a faster one is free
)

// Severity is how bad a finding is.
type Severity string

// Severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Finding is one fault.
type Finding struct {
	Rule     Rule
	Severity Severity
	Op       string // that it is about; empty where it is about a device alone
	Device   string
	Ops      int           // that are concerned
	Seconds  units.Seconds // that it costs: of transfers, or of waiting; 0 where unknown
	Bytes    units.Bytes   // that it costs: of memory or of traffic
	Message  string
	Fix      string // the change that would help; empty where none is known
	// Gain is what the step shrinks by with the change, simulated; Tried says that it was.
	Gain  units.Seconds
	Tried bool
}

// Report is what a check has found.
type Report struct {
	// Step is the simulated step; 0 where the placement cannot be simulated.
	Step     units.Seconds
	Findings []Finding // errors first, then by gain and by cost
}

// Count returns how many findings have severity s.
func (r *Report) Count(s Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// sort puts errors first, then what gains most, then what costs most.
func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(b.Gain, a.Gain), cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(b.Bytes, a.Bytes))
	})
}
