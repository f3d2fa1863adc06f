//go:build unix

package python_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"placer/measure/python"
)

// A program that answers otherwise and does not end with its input, and what it has started,
// hold nobody up.
func TestProgramThatStays(t *testing.T) {
	script := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho a banner\nsleep 20\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	_, err := python.Start(context.Background(), python.Config{Runtime: python.Torch(), Python: script, Graph: "g.json"})
	if err == nil || !strings.Contains(err.Error(), `"a banner\n" is no answer`) {
		t.Errorf("error %v", err)
	}
	if took := time.Since(begin); took > 18*time.Second {
		t.Errorf("that took %v", took)
	}
}
