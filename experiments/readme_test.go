package experiments_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestCommands: every target and every program that a page of experiments names in a command is
// there.
func TestCommands(t *testing.T) {
	targets := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z0-9 -]*):`).FindAllStringSubmatch(read(t, "../Makefile"), -1) {
		for _, name := range strings.Fields(m[1]) {
			targets[name] = true
		}
	}
	named := 0
	err := filepath.WalkDir(".", func(page string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(page) != ".md" {
			return err
		}
		text := read(t, page)
		for _, m := range regexp.MustCompile("(?:`|    |\\$ |[A-Z_]+=[^ `]* )make ([a-z][a-z0-9-]*)").FindAllStringSubmatch(text, -1) {
			named++
			if !targets[m[1]] {
				t.Errorf("%s: the Makefile has no target %s", page, m[1])
			}
		}
		for _, m := range regexp.MustCompile(`(?:go run \./|go test \./|[ \x60])(experiments/[a-z0-9_/-]+(?:\.sh|\.py)?)[ \x60]`).FindAllStringSubmatch(text, -1) {
			named++
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if named < 80 {
		t.Errorf("found %d commands: the pages have changed their form", named)
	}
}
