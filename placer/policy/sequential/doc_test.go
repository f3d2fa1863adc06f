package sequential

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWhereToStart: every method that doc.go sends a reader to is there.
func TestWhereToStart(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	must(t, err)
	_, start, _ := strings.Cut(string(text), "// Where to start.")
	start, _, _ = strings.Cut(start, "// It is one package")
	files, err := filepath.Glob("*.go")
	must(t, err)
	methods := map[string]bool{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		must(t, err)
		for _, d := range f.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				of := f.Recv.List[0].Type
				if p, ok := of.(*ast.StarExpr); ok {
					of = p.X
				}
				if of, ok := of.(*ast.Ident); ok {
					methods[of.Name+"."+f.Name.Name] = true
				}
			}
		}
	}
	named := regexp.MustCompile(`\b\w+\.\w+\b`).FindAllString(start, -1)
	for _, m := range named {
		if !methods[m] {
			t.Errorf("doc.go says %s, which is not there", m)
		}
	}
	if len(named) < 10 {
		t.Errorf("doc.go names %d methods to start at", len(named))
	}
}
