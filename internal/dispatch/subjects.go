package dispatch

import (
	"strings"
	"time"
)

// The streams, buckets and subjects of a hub.
const (
	jobStream    = "JOBS"
	resultStream = "RESULTS"
	objectBucket = "placer"
	jobPrefix    = "jobs."    // jobs.KIND.RUN: a consumer named KIND serves it
	resultPrefix = "results." // results.RUN
	beatPrefix   = "workers." // workers.HASH, that of the worker's name
)

// Times of the protocol.
const (
	ackWait    = 5 * time.Second // a job without a sign of life goes to another worker
	signOfLife = ackWait / 3
	maxDeliver = 10
	// refusalPause is how long a slot rests that had to refuse a problem, so that workers
	// which can do it have its jobs.
	refusalPause = time.Second
	beatPeriod   = 500 * time.Millisecond
	beatExpiry   = 6 * time.Second // a worker unheard of for that long does not count
	dedupe       = 2 * time.Minute // for that long the hub drops a second result of a job
	dialTimeout  = 5 * time.Second
	maxPayload   = 8 << 20
	objectAge    = 24 * time.Hour // for that long the hub keeps what no search refers to
	mostResults  = 200_000        // the oldest go first; one has some 200 bytes
)

// Kind is what a worker can do, and the name of the queue it serves.
type Kind string

// Roofline evaluates by the simulator; any worker can.
const Roofline Kind = "roofline"

// Hardware measures on the machine of the given hash; a worker on such a machine
// can.
func Hardware(machine string) Kind { return Kind("hardware-" + machine[:min(12, len(machine))]) }

// IsHardware reports whether k measures.
func (k Kind) IsHardware() bool { return strings.HasPrefix(string(k), "hardware-") }
