package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strconv"
	"testing"
)

// uses returns the names that file takes from packages, as "package.Name" with
// the last element of the import path (before a version) for the package.
func uses(t *testing.T, file string) (names []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]string{}
	for _, spec := range f.Imports {
		imp, _ := strconv.Unquote(spec.Path.Value)
		base := path.Base(imp)
		if imp == "math/rand/v2" {
			base = "rand"
		}
		name := base
		if spec.Name != nil {
			name = spec.Name.Name
		}
		packages[name] = base
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := s.X.(*ast.Ident); ok && id.Obj == nil {
				if p, ok := packages[id.Name]; ok {
					names = append(names, p+"."+s.Sel.Name)
				}
			}
		}
		return true
	})
	return names
}
