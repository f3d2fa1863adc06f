package nn

import (
	"testing"

	"pgregory.net/rapid"
)

// TestSlotsAreNotSharedAtOneTime: buffers in one slot live one after another and
// fit, and a slot is reused where it can be.
func TestSlotsAreNotSharedAtOneTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []*lifetime
		for range rapid.IntRange(1, 30).Draw(t, "buffers") {
			birth := rapid.IntRange(0, 20).Draw(t, "birth")
			death := birth + rapid.IntRange(0, 10).Draw(t, "span")
			if rapid.IntRange(0, 9).Draw(t, "kept") == 0 {
				death = forever
			}
			b := &buffer{n: rapid.IntRange(1, 5).Draw(t, "size"), d: 2}
			all = append(all, &lifetime{buffer: b, birth: birth, death: death})
		}
		assign(all)
		for i, a := range all {
			if a.buffer.slot.size < a.buffer.size() {
				t.Fatalf("a buffer of %d elements in a slot of %d", a.buffer.size(), a.buffer.slot.size)
			}
			for _, b := range all[:i] {
				if a.buffer.slot == b.buffer.slot && a.birth <= b.death && b.birth <= a.death {
					t.Fatalf("lifetimes %d-%d and %d-%d share a slot", a.birth, a.death, b.birth, b.death)
				}
			}
		}
	})
	one := []*lifetime{
		{buffer: &buffer{n: 2, d: 2}, birth: 0, death: 1},
		{buffer: &buffer{n: 2, d: 2}, birth: 2, death: 3},
	}
	if n := len(assign(one)); n != 1 {
		t.Errorf("%d slots for two buffers one after another, want 1", n)
	}
}
