package schedule

import (
	"math"
	"testing"

	"placer/hw"
)

// TestArrivals: a link takes one transfer at a time, asking sends nothing, and what
// was sent is not sent again.
func TestArrivals(t *testing.T) {
	m, err := hw.Take("p100", 2, false)
	if err != nil {
		t.Fatal(err)
	}
	const size = 1 << 24
	w := float64(m.TransferSeconds(0, 1, size))
	a := NewArrivals(m, 2)
	for _, c := range []struct {
		name string
		got  float64
		want float64
	}{
		{"asked", a.When(0, size, 0, 1, 1, false), 1 + w},
		{"sent", a.When(0, size, 0, 1, 1, true), 1 + w},
		{"sent again", a.When(0, size, 0, 5, 1, true), 1 + w},
		{"waits for the link", a.When(1, size, 0, 1, 1, true), 1 + 2*w},
	} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%s: there at %g, want %g", c.name, c.got, c.want)
		}
	}
	if !a.Sent(0, 1) || a.Sent(0, 0) {
		t.Error("what was sent where is not known")
	}
	a.Reset()
	if a.Sent(0, 1) || a.When(1, size, 0, 0, 1, false) != w {
		t.Error("a schedule begins with what the one before sent")
	}
}
