package tfevents

import "testing"

// FuzzRead: a file either is refused or gives no more numbers than it has bytes.
func FuzzRead(f *testing.F) {
	var b buffer
	w, err := NewWriter(&b, func() float64 { return 7 })
	if err != nil {
		f.Fatal(err)
	}
	if err := w.Write(1, Scalar("x", 1), Histogram("h", []float64{1, 2})); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(b))
	f.Fuzz(func(t *testing.T, data []byte) {
		if all, err := Read(data); err == nil && len(all) > len(data) {
			t.Errorf("%d numbers in %d bytes", len(all), len(data))
		}
	})
}
