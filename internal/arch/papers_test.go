package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPapersTable: every file and test that docs/papers.md names exists.
func TestPapersTable(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "papers.md"))
	if err != nil {
		t.Fatal(err)
	}
	file := regexp.MustCompile(`[a-z0-9/]+/[a-z0-9_]+\.go`)
	test := regexp.MustCompile(`([a-z0-9/]+_test\.go): (Test[A-Za-z0-9]+)`)
	files, tests := 0, 0
	for _, name := range file.FindAllString(string(text), -1) {
		files++
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Errorf("docs/papers.md names %s, which does not exist", name)
		}
	}
	for _, m := range test.FindAllStringSubmatch(string(text), -1) {
		tests++
		code, err := os.ReadFile(filepath.Join(root, m[1]))
		if err == nil && !strings.Contains(string(code), "func "+m[2]+"(") {
			t.Errorf("docs/papers.md names test %s, which %s does not have", m[2], m[1])
		}
	}
	if files < 20 || tests < 10 {
		t.Errorf("found %d files and %d tests in docs/papers.md: the table has changed its form", files, tests)
	}
}
