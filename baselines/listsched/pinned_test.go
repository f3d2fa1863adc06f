package listsched

import (
	"testing"

	"placer/baselines/conformance"
)

// What is pinned stays, and what is free goes where it shortens the step: with the ops of one
// device set free the result is no worse than all of them on any one of the others.
func TestPinned(t *testing.T) {
	const free = 255
	worse := 0
	cases := conformance.Cases()
	for _, c := range cases {
		p, err := c.Problem()
		if err != nil {
			t.Fatal(err)
		}
		base, err := UnitHEFT().Place(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		last := uint8(p.Machine.NumDevices() - 1)
		pinned := Pinned{Device: append([]uint8{}, base.Device...), Free: free}
		for i, d := range pinned.Device {
			if d == last {
				pinned.Device[i] = free
			}
		}
		out, err := pinned.Place(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range pinned.Device {
			if d != free && out.Device[i] != d {
				t.Fatalf("%s: op %d is on %d, was pinned to %d", c.Name, i, out.Device[i], d)
			}
		}
		if base.Score.Better(out.Score) {
			worse++
		}
	}
	if worse > len(cases)/4 {
		t.Errorf("%d of %d are worse than HEFT, whose placement they may make again", worse, len(cases))
	}
}
