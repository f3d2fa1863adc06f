package strategies

import (
	"context"
	"testing"

	"placer/hw"
)

// TestRoom: what took long keeps the next from beginning late, and without an end there
// is always room.
func TestRoom(t *testing.T) {
	now := 0.0
	r := &Room{Clock: func() float64 { return now }, End: 10}
	begin := r.begin()
	now = 2
	r.ended(begin)
	for at, want := range map[float64]bool{4: true, 5: false, 9: false, 10: false} {
		if now = at; r.left() != want {
			t.Errorf("at %g s of 10, the longest 2 s: room is %v, want %v", at, r.left(), want)
		}
	}
	now = 2
	if r.Expect(4); r.left() {
		t.Error("room at 2 s of 10 for what is expected to take 4")
	}
	var none *Room
	none.ended(none.begin())
	if !none.left() {
		t.Error("no end, and no room")
	}
}

// TestRoomOfSeveral: comparisons on goroutines share a Room, which the race detector sees.
func TestRoomOfSeveral(t *testing.T) {
	m, err := hw.Take("a100", 2, false)
	if err != nil {
		t.Fatal(err)
	}
	room := &Room{Clock: func() float64 { return 0 }, End: 1}
	x, err := NewComparison(source(), family(small[5]), m, Config{Batch: 2, Workers: 4, Room: room, Clock: room.Clock})
	if err != nil {
		t.Fatal(err)
	}
	if best := Best(x.Rows(context.Background(), nil)); best == nil || room.longest != 0 {
		t.Errorf("%v, %g s", best, room.longest)
	}
}
