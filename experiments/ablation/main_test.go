package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestRecordedUntilAllIsThere: a run that fails leaves what is recorded.
func TestRecordedUntilAllIsThere(t *testing.T) {
	out := filepath.Join(t.TempDir(), "recorded.jsonl")
	if err := os.WriteFile(out, []byte("recorded\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run("nosuch:2", 10, 1, "chain", 32, nil, out); err == nil {
		t.Error("a workload that does not exist passed")
	}
	if text, err := os.ReadFile(out); err != nil || string(text) != "recorded\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestConfidence: of six runs, what docs call 96.9%; of two, a coin.
func TestConfidence(t *testing.T) {
	for seeds, want := range map[int]string{1: "0.0", 2: "50.0", 3: "75.0", 6: "96.9"} {
		if got := fmt.Sprintf("%.1f", 100*confidence(seeds)); got != want {
			t.Errorf("%d seeds: %s, want %s", seeds, got, want)
		}
	}
}

// TestCheck: variants that do not exist, no seeds and arguments behind the flags are errors.
func TestCheck(t *testing.T) {
	if err := check(6, "no curriculum;no free logits, T = 2", nil); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		seeds int
		skip  string
		left  []string
	}{{0, "", nil}, {6, "no curriculum; T = 2", nil}, {6, "", []string{"trfxl2:2"}}} {
		if err := check(c.seeds, c.skip, c.left); err == nil {
			t.Errorf("%+v passed", c)
		}
	}
}
