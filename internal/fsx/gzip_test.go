package fsx

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"
)

func packed(t *testing.T, r io.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.Copy(z, r); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// zeros are n bytes.
type zeros int

func (z *zeros) Read(b []byte) (int, error) {
	n := min(len(b), int(*z))
	clear(b[:n])
	if *z -= zeros(n); n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// TestExpansionIsBounded: what a small file expands to is bounded by its size.
func TestExpansionIsBounded(t *testing.T) {
	many := zeros(160 << 20)
	data := packed(t, &many)
	if got, err := Expand(data, "bomb.gz", 1<<30); err == nil || !strings.Contains(err.Error(), "bomb.gz: ") || !strings.Contains(err.Error(), "expand to more than") {
		t.Errorf("%d bytes became %d, %v", len(data), len(got), err)
	}
	some := zeros(1 << 20)
	if got, err := Expand(packed(t, &some), "zeros.gz", 1<<20); err != nil || len(got) != 1<<20 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
