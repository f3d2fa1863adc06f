package arch

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocFiles: files that a package's documentation sends a reader to are there, and where
// it goes through "the files", none is left out.
func TestDocFiles(t *testing.T) {
	named := regexp.MustCompile(`\b[a-z]\w*\.go\b`)
	checked := 0
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && file != root) {
			return filepath.SkipDir
		}
		if d.Name() != "doc.go" {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		text := f.Doc.Text()
		listed := map[string]bool{}
		for _, name := range named.FindAllString(text, -1) {
			listed[name] = true
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), name)); err != nil {
				t.Errorf("%s names %s, which is not there", file, name)
			}
		}
		if !strings.Contains(text, "The files") {
			return nil
		}
		checked++
		all, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.go"))
		if err != nil {
			return err
		}
		for _, name := range all {
			name = filepath.Base(name)
			if name != "doc.go" && !strings.HasSuffix(name, "_test.go") && !listed[name] {
				t.Errorf("%s leaves out %s", file, name)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 10 {
		t.Errorf("%d packages go through their files", checked)
	}
}
