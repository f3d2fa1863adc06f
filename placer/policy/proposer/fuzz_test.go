package proposer

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"placer/plan"
)

// Whatever a file holds, it is read or refused.
func FuzzRead(f *testing.F) {
	var network, sample bytes.Buffer
	if err := New(plan.Place, 2, rand.New(rand.NewPCG(1, 1))).Write(&network); err != nil {
		f.Fatal(err)
	}
	if err := made(2, 1).Write(&sample, "x"); err != nil {
		f.Fatal(err)
	}
	f.Add(bytes.Replace(network.Bytes(), []byte(`"sha256"`), []byte(`"sha255"`), 1)) // no checksum, which refuses all that is changed
	f.Add(bytes.Replace(sample.Bytes(), []byte(`"sha256"`), []byte(`"sha255"`), 1))  // no checksum, which refuses all that is changed
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		if n, err := Read(data, "x"); err == nil {
			n.Rank(nil, nil)
		}
		if s, err := ReadSample(data, plan.Place, "x", "x"); err == nil && s != nil && len(s.Gain) > len(data) {
			t.Errorf("%d moves in %d bytes", len(s.Gain), len(data))
		}
	})
}
