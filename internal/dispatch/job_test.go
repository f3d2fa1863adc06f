package dispatch

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
)

// TestLyingMessages: a few bytes that say they expand to gigabytes claim no memory.
func TestLyingMessages(t *testing.T) {
	huge := binary.AppendUvarint(nil, 4<<30-1)
	j, err := decodeJob(append([]byte("{\"id\":\"a\",\"ops\":4294967295}\n"), huge...))
	if err != nil {
		t.Fatal(err)
	}
	if err := j.unpack(100); err == nil || !strings.Contains(err.Error(), "the graph has 100") {
		t.Errorf("%v", err)
	}
	j.Ops = 100
	if err := j.unpack(100); err == nil || !strings.Contains(err.Error(), "body does not hold") {
		t.Errorf("%v", err)
	}
	if _, err := expand(huge); err == nil || !strings.Contains(err.Error(), "256 times") {
		t.Errorf("%v", err)
	}
}

// FuzzJob: a message either is refused or is the job that it is again when written.
func FuzzJob(f *testing.F) {
	for _, j := range []job{{ID: "a-1", Run: "a", Problem: "p", device: []uint8{0, 1, 2}}, {ID: "b", Priority: "r", device: []uint8{3}, fusion: []uint8{255}}, {ID: "c", device: []uint8{1, 0}, fusion: []uint8{2, 0}, ranks: []int32{1 << 30, -2}}} {
		text, err := j.encode(nil)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, len(j.device))
	}
	f.Fuzz(func(t *testing.T, data []byte, ops int) {
		j, err := decodeJob(data)
		if err != nil || j.unpack(ops) != nil {
			return
		}
		text, err := j.encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodeJob(text)
		if err != nil || again.unpack(ops) != nil || !bytes.Equal(again.device, j.device) || !bytes.Equal(again.fusion, j.fusion) || !slices.Equal(again.ranks, j.ranks) || again.ID != j.ID {
			t.Errorf("%+v, %v, was %+v", again, err, j)
		}
	})
}

// FuzzObject: what is stored expands to itself, and nothing to more than its bound.
func FuzzObject(f *testing.F) {
	f.Add(s2.Encode(nil, []byte("a graph")))
	f.Add(binary.AppendUvarint(nil, 4<<30-1))
	f.Fuzz(func(t *testing.T, packed []byte) {
		if data, err := expand(packed); err == nil && len(data) > 1<<20+mostExpansion*len(packed) {
			t.Errorf("%d bytes of %d", len(data), len(packed))
		}
		if data, err := expand(s2.Encode(nil, packed)); err != nil || !bytes.Equal(data, packed) {
			t.Errorf("%v: not what was stored", err)
		}
		if ranks, err := decodeRanks(packed); err == nil && !bytes.Equal(encodeRanks(ranks), packed) {
			t.Error("other ranks")
		}
	})
}
