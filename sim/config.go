package sim

import (
	"fmt"
	"strings"

	"placer/graph"
	"placer/graph/fuse"
	"placer/units"
)

// CostModel gives the time of an op on a device. Times must be positive and
// finite, and depend on the arguments alone.
type CostModel interface {
	OpSeconds(op graph.OpID, device int) units.Seconds
}

// KernelCostModel is a CostModel that knows what the time of a kernel depends
// on. A kernel of several ops takes the larger of the sum of their Compute and the
// sum of their traffic at PerByte, and the longest Launch (fuse.Traffic). With a
// CostModel that is none, it takes what its ops take one by one.
type KernelCostModel interface {
	CostModel
	Parts(op graph.OpID, device int) fuse.Parts
}

// Contention says how transfers share links.
type Contention uint8

// Models of contention.
const (
	// FIFO links serve one transfer at a time.
	FIFO Contention = iota
	// FairShare links divide their bandwidth among the transfers under way, max-min
	// fairly; see fair.go.
	FairShare
	// Uncontended transfers never wait: each takes the latencies of its route and its
	// bytes over the lowest bandwidth, whatever else is under way.
	Uncontended
)

var contentionNames = [...]string{"fifo", "fair-share", "none"}

func (c Contention) String() string {
	if int(c) < len(contentionNames) {
		return contentionNames[c]
	}
	return fmt.Sprintf("contention(%d)", uint8(c))
}

// ParseContention reads a name that String prints.
func ParseContention(s string) (Contention, error) {
	for c, name := range contentionNames {
		if name == s {
			return Contention(c), nil
		}
	}
	return 0, fmt.Errorf("unknown contention %q, want one of %s", s, strings.Join(contentionNames[:], ", "))
}

// Config chooses what the simulator models.
type Config struct {
	// Memory counts bytes. Without it every placement is feasible and Evaluate is a
	// little faster.
	Memory     bool
	Contention Contention
}

// Default is exact memory and FIFO links.
func Default() Config { return Config{Memory: true, Contention: FIFO} }

// Validate reports a contention model that does not exist.
func (c Config) Validate() error {
	if c.Contention > Uncontended {
		return fmt.Errorf("simulator: %v does not exist", c.Contention)
	}
	return nil
}
