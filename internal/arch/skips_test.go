package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSkips: every file that skips tests says why, and is in docs/testing.md.
func TestSkips(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	skips, skipping := 0, map[string]bool{}
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || len(d.Name()) > 2 && d.Name()[0] == '.') {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			receiver, ok := method.X.(*ast.Ident)
			if !ok || len(receiver.Name) > 2 || method.Sel.Name != "Skip" && method.Sel.Name != "Skipf" && method.Sel.Name != "SkipNow" {
				return true
			}
			skips++
			skipping[filepath.ToSlash(rel)] = true
			if len(call.Args) == 0 {
				t.Errorf("%s skips a test and does not say why", rel)
			}
			if !strings.Contains(string(page), filepath.ToSlash(rel)) {
				t.Errorf("docs/testing.md lacks %s, which skips tests", rel)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range regexp.MustCompile(`[a-z0-9/_]+/[a-z0-9_]+\.go`).FindAllString(string(page), -1) {
		if !skipping[file] {
			t.Errorf("docs/testing.md names %s, which skips nothing", file)
		}
	}
	if skips < 20 {
		t.Errorf("found %d skips: the tests have changed their form", skips)
	}
}
