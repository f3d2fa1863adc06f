//go:build !light

package cli

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"placer/internal/jsonx"
	"placer/plan"
)

// simulating are the settings of a problem that workers simulate: all that a score depends
// on beside graph and machine.
type simulating struct {
	Contention string `json:"contention,omitempty"`
	// Scores identify what the search's simulator computes, as scoresOf has it; a worker's
	// must compute the same to the bit.
	Scores string `json:"scores"`
}

func (s simulating) String() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // no field can fail
	}
	return string(text)
}

// parseSimulating reads what String wrote.
func parseSimulating(text string) (s simulating, err error) {
	if err := jsonx.Decode([]byte(text), &s); err != nil {
		return s, fmt.Errorf("the search is of another version of placer: settings %.40q: %w", text, err)
	}
	return s, nil
}

// scoresOf identifies the op times of e on d devices, and its scores of ops dealt out among
// them: unfused, first ready first, and with an order and fusion of their own.
func scoresOf(e plan.Evaluator, d int) string {
	h := sha256.New()
	for on := range d {
		writeBits(h, e.OpSeconds(on)...)
	}
	n := len(e.OpSeconds(0))
	dealt := plan.Decision{Device: make([]uint8, n)}
	ordered := plan.Decision{Device: dealt.Device, Priority: make([]int32, n), Fusion: make([]uint8, n)}
	for i := range n {
		dealt.Device[i] = uint8(i % d)
		ordered.Priority[i] = int32(n - 1 - i)
		ordered.Fusion[i] = uint8(1 + i%3)
	}
	for _, x := range []plan.Decision{dealt, ordered} {
		s := e.Evaluate(x)
		writeBits(h, s.Value, float64(s.Overflow))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// writeBits writes the bits of each x to w, a hash.
func writeBits(w io.Writer, x ...float64) {
	b := make([]byte, 0, 8*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	_, _ = w.Write(b)
}
