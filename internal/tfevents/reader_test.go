package tfevents

import (
	"slices"
	"testing"
)

// TestRead: what is written is read again, in order and over two files; a record that is
// cut short is left out, a changed byte is an error.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	clock := func() float64 { return 7 }
	for start := range 2 {
		f, err := Create(dir, "test", 10*start, clock)
		if err != nil {
			t.Fatal(err)
		}
		for step := range 3 {
			if err := f.Write(int64(10*start+step), Scalar("loss", float64(step)+0.5), Histogram("weights", []float64{1, 2}), Scalar("accuracy", 0.25)); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var want []Record
	for _, step := range []int64{0, 1, 2, 10, 11, 12} {
		want = append(want, Record{"loss", step, float64(step%10) + 0.5}, Record{"accuracy", step, 0.25})
	}
	if !slices.Equal(got, want) {
		t.Fatalf("read %v, want %v", got, want)
	}

	var b buffer
	w, err := NewWriter(&b, clock)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(1, Scalar("x", 1)); err != nil {
		t.Fatal(err)
	}
	whole := len(b)
	if err := w.Write(2, Scalar("x", 2)); err != nil {
		t.Fatal(err)
	}
	for cut := whole; cut < len(b); cut++ {
		if r, err := Read(b[:cut]); err != nil || len(r) != 1 {
			t.Fatalf("cut to %d of %d bytes: %v, %v", cut, len(b), r, err)
		}
	}
	for _, at := range []int{0, 9, 20, whole - 1} {
		damaged := slices.Clone(b)
		damaged[at] ^= 0x40
		if _, err := Read(damaged); err == nil {
			t.Errorf("a changed byte %d went unseen", at)
		}
	}
}

type buffer []byte

func (b *buffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}
