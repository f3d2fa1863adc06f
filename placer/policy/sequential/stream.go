package sequential

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// stream returns the random stream of one purpose.
func stream(seed uint64, purpose string, number uint64) *rand.Rand {
	h := sha256.Sum256(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, seed), number))
	k := sha256.Sum256(append(h[:], purpose...))
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(k[:]), binary.LittleEndian.Uint64(k[8:])))
}
