package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNotice: NOTICE lists the folders with a README.md or a licence under testdata,
// which is where data of others lies, and each of them has a README.md.
func TestNotice(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "NOTICE"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range regexp.MustCompile(`(?m)^\S+/testdata\b`).FindAllString(string(text), -1) {
		if _, err := os.Stat(filepath.Join(root, folder, "README.md")); err != nil {
			t.Errorf("NOTICE names %s: %v", folder, err)
		}
	}
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		if filepath.Base(folder) != "testdata" || d.Name() != "README.md" && !strings.HasPrefix(d.Name(), "LICENSE") {
			return nil
		}
		if !strings.Contains(string(text), "\n"+folder+" ") {
			t.Errorf("NOTICE lacks %s, which has %s", folder, d.Name())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
