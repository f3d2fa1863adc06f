package cuda

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strings"
	"testing"
)

// TestPointerSafety reads the source for the rules of this package. The address
// of a variable may become a number only in the argument list of a call that is
// marked uintptrescapes: elsewhere the variable may stay on the goroutine's
// stack, which moves. What C reaches through memory of ours must be pinned in the
// same function. No library's registering by reflection is on these paths.
func TestPointerSafety(t *testing.T) {
	files := token.NewFileSet()
	packages, err := parser.ParseDir(files, ".", func(i fs.FileInfo) bool { return !strings.HasSuffix(i.Name(), "_test.go") }, parser.ParseComments) //nolint:staticcheck // ParseDir ignores build tags, as this test must: it reads every file
	if err != nil {
		t.Fatal(err)
	}
	var found []*ast.File
	for _, f := range packages["cuda"].Files {
		found = append(found, f)
	}
	faults, taken := unsafeUses(files, found)
	for _, f := range faults {
		t.Error(f)
	}
	if taken < 20 {
		t.Errorf("found %d addresses taken for calls: the test no longer sees them", taken)
	}
}

// TestPointerSafetyFinds: the test above can fail.
func TestPointerSafetyFinds(t *testing.T) {
	for name, source := range map[string]string{
		"variable": `package cuda
func f(g uintptr) { var x int32; p := uintptr(unsafe.Pointer(&x)); check(g, p) }`,
		"helper": `package cuda
func up(x *int32) uintptr { return uintptr(unsafe.Pointer(x)) }`,
		"unmarked call": `package cuda
func send(a ...uintptr) {}
func f() { var x int32; send(uintptr(unsafe.Pointer(&x))) }`,
		"array": `package cuda
func f(g uintptr) { var x int32; v := [1]uintptr{uintptr(unsafe.Pointer(&x))}; check(g, uintptr(unsafe.Pointer(&v[0]))) }`,
	} {
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, name, source, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if faults, _ := unsafeUses(files, []*ast.File{f}); len(faults) == 0 {
			t.Errorf("%s: no fault found", name)
		}
	}
}

// unsafeUses returns the uses of unsafe addresses that break a rule, and how many
// keep it.
func unsafeUses(files *token.FileSet, source []*ast.File) (faults []string, taken int) {
	marked := map[string]bool{"call": true, "check": true, "checkInto": true, "status": true}
	for _, f := range source {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if marked[fn.Name.Name] && fn.Recv == nil {
				if fn.Doc == nil || !strings.Contains(rawComments(fn.Doc), "//go:uintptrescapes") {
					faults = append(faults, files.Position(fn.Pos()).String()+": "+fn.Name.Name+" is not marked uintptrescapes")
				}
			}
			pins := false
			ast.Inspect(fn, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Pin" {
					pins = true
				}
				return true
			})
			allowed := map[ast.Node]bool{}
			ast.Inspect(fn, func(n ast.Node) bool {
				c, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if id, ok := c.Fun.(*ast.Ident); ok && marked[id.Name] {
					for _, a := range c.Args {
						allowed[a] = true
					}
				}
				if isAddress(c) {
					if allowed[c] || pins {
						taken++
					} else {
						faults = append(faults, files.Position(c.Pos()).String()+": an address becomes a number outside the arguments of a marked call")
					}
				}
				return true
			})
		}
	}
	return faults, taken
}

func rawComments(g *ast.CommentGroup) string {
	var b strings.Builder
	for _, c := range g.List {
		b.WriteString(c.Text + "\n")
	}
	return b.String()
}

// isAddress reports whether c is uintptr(unsafe.Pointer(...)).
func isAddress(c *ast.CallExpr) bool {
	id, ok := c.Fun.(*ast.Ident)
	if !ok || id.Name != "uintptr" || len(c.Args) != 1 {
		return false
	}
	in, ok := c.Args[0].(*ast.CallExpr)
	if !ok {
		return false
	}
	s, ok := in.Fun.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Pointer"
}
