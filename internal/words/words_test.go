package words_test

import (
	"testing"

	"placer/internal/words"
)

func TestCount(t *testing.T) {
	for n, want := range map[int]string{-1: "-1 matches are", 0: "0 matches are", 1: "1 match is", 2: "2 matches are", 11: "11 matches are"} {
		if got := words.Count(n, "match is", "matches are"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
