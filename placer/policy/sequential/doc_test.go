package sequential

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMapOfFiles: doc.go has a line for every file of the package, and none for another.
func TestMapOfFiles(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	must(t, err)
	var listed []string
	for _, m := range regexp.MustCompile(`(?m)^//   - (\w+\.go):`).FindAllStringSubmatch(string(text), -1) {
		listed = append(listed, m[1])
	}
	files, err := filepath.Glob("*.go")
	must(t, err)
	files = slices.DeleteFunc(files, func(name string) bool { return name == "doc.go" || strings.HasSuffix(name, "_test.go") })
	slices.Sort(listed)
	slices.Sort(files)
	if !slices.Equal(listed, files) {
		t.Errorf("doc.go lists\n%v, the files are\n%v", listed, files)
	}
}
