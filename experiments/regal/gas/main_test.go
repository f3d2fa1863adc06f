package main

import (
	"path/filepath"
	"strings"
	"testing"

	"placer/baselines/regal/gas"
)

// TestArguments: what cannot be trained, or written once it is, is told before the training.
func TestArguments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weights")
	for name, c := range map[string]struct {
		graphs, steps int
		out, want     string
	}{
		"no file":   {1, 1, "", "-o"},
		"no graphs": {0, 1, file, "-graphs 0"},
		"no steps":  {1, 0, file, "-steps 0"},
	} {
		how := gas.DefaultTraining()
		how.Steps = c.steps
		if err := train(t.Context(), how, c.graphs, 1, c.out); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want something about %s", name, err, c.want)
		}
	}
}
