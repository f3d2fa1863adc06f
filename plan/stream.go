package plan

import (
	"crypto/sha256"
	"encoding/binary"
)

// StreamSeed returns the seed of the random stream that belongs to name, a method's
// or a part of one, in a run with the given seed.
func StreamSeed(seed uint64, name string) uint64 {
	h := sha256.Sum256(append(binary.LittleEndian.AppendUint64(nil, seed), name...))
	return binary.LittleEndian.Uint64(h[:])
}
