package arch

import (
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the table of the tree in docs/architecture.md")

// tour returns the top packages, in the order in which a reader should meet them.
func tour() []string {
	return []string{"cmd/placer", "placer", "graph", "workloads", "units", "plan", "hw", "roofline", "sim", "measure", "schedule",
		"nn", "graphsage", "transformerxl", "ppo", "baselines"}
}

// TestTop: the folders at the top are those of the tour and what holds no product
// code, at most twenty in all.
func TestTop(t *testing.T) {
	known := []string{"docs", "experiments", "internal", "python"}
	for _, pkg := range tour() {
		known = append(known, strings.Split(pkg, "/")[0])
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	folders := 0
	for _, e := range entries {
		if !e.IsDir() || e.Name()[0] == '.' || slices.Contains([]string{"bin", "runs"}, e.Name()) {
			continue
		}
		folders++
		if !slices.Contains(known, e.Name()) {
			t.Errorf("folder %s at the top is not in the tour", e.Name())
		}
	}
	if folders > 20 {
		t.Errorf("%d folders at the top, want at most 20", folders)
	}
}

// TestArchitecture: docs/architecture.md names each arrow of its picture with
// functions that exist, and lists the tree with the first sentence of each package.
func TestArchitecture(t *testing.T) {
	file := filepath.Join(root, "docs", "architecture.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "```")
	if len(parts) != 3 {
		t.Fatalf("%s has %d fences of code, want one picture", file, len(parts)-1)
	}
	picture, page := parts[1], parts[2]

	rows := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \| [^|]* \| ([^|]*) \|$`).FindAllStringSubmatch(page, -1) {
		rows[m[1]] = m[2]
	}
	drawn := map[string]bool{}
	for _, m := range regexp.MustCompile(`\((\d+)\)`).FindAllStringSubmatch(picture, -1) {
		drawn[m[1]] = true
		if rows[m[1]] == "" {
			t.Errorf("arrow %s has no row", m[1])
		}
	}
	name := regexp.MustCompile("`([a-z0-9/]+)\\.([A-Z]\\w*)(?:\\.([A-Z]\\w*))?`")
	for arrow, functions := range rows {
		if !drawn[arrow] {
			t.Errorf("row %s has no arrow", arrow)
		}
		named := name.FindAllStringSubmatch(functions, -1)
		if len(named) == 0 {
			t.Errorf("arrow %s names no function: %q", arrow, functions)
		}
		for _, m := range named {
			if !declares(t, m[1], m[2], m[3]) {
				t.Errorf("arrow %s: %s does not exist", arrow, m[0])
			}
		}
	}

	const head = "| folder | owns |\n|---|---|\n"
	want := head
	for _, pkg := range tour() {
		want += fmt.Sprintf("| `%s` | %s |\n", pkg, synopsis(t, pkg))
	}
	at := strings.Index(string(text), head)
	if at < 0 {
		t.Fatalf("%s has no table of the tree", file)
	}
	end := at
	for end < len(text) && text[end] == '|' {
		end += strings.IndexByte(string(text[end:]), '\n') + 1
	}
	if string(text[at:end]) == want {
		return
	}
	if *update {
		if err := os.WriteFile(file, []byte(string(text[:at])+want+string(text[end:])), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("the table of the tree in %s is not what the packages say; run go test ./internal/arch -update. Want\n%s", file, want)
}

// sources returns the files of a package, parsed, without its tests.
func sources(t *testing.T, pkg string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pkg), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// synopsis returns the first sentence of a package's documentation.
func synopsis(t *testing.T, pkg string) string {
	t.Helper()
	for _, f := range sources(t, pkg) {
		if s := f.Doc.Text(); s != "" {
			return new(doc.Package).Synopsis(s)
		}
	}
	t.Errorf("package %s has no documentation", pkg)
	return ""
}

// declares reports whether the package has a function or type of that name and,
// where member is not empty, the type a method or field of that name.
func declares(t *testing.T, pkg, name, member string) bool {
	t.Helper()
	for _, f := range sources(t, pkg) {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && member == "" && d.Name.Name == name {
					return true
				}
				if d.Recv != nil && member == d.Name.Name && receiver(d) == name {
					return true
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if s, ok := s.(*ast.TypeSpec); ok && s.Name.Name == name && (member == "" || hasMember(s.Type, member)) {
						return true
					}
				}
			}
		}
	}
	return false
}

func receiver(d *ast.FuncDecl) string {
	x := d.Recv.List[0].Type
	if p, ok := x.(*ast.StarExpr); ok {
		x = p.X
	}
	if id, ok := x.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// hasMember reports whether an interface or a struct has a method or a field of that
// name.
func hasMember(x ast.Expr, name string) bool {
	var fields *ast.FieldList
	switch x := x.(type) {
	case *ast.InterfaceType:
		fields = x.Methods
	case *ast.StructType:
		fields = x.Fields
	default:
		return false
	}
	return slices.ContainsFunc(fields.List, func(f *ast.Field) bool {
		return slices.ContainsFunc(f.Names, func(id *ast.Ident) bool { return id.Name == name })
	})
}

// levels are the layers of the tree, from the top: a package may import those of its
// own level and of lower ones (docs/adr/0024). A folder stands for all below it that
// have no entry of their own.
var levels = [][]string{
	{"cmd", "internal/cli", "internal/bench", "experiments"},
	{"placer", "baselines", "internal/report", "internal/campaign", "internal/compare", "internal/dispatch"},
	{"measure", "schedule", "sim/throughput", "sim/trace"},
	{"sim", "roofline", "hw", "plan", "workloads", "graph", "units"},
	{"nn", "graphsage", "transformerxl", "ppo"},
	{"internal/fsx", "internal/jsonx", "internal/tfevents", "internal/doctest", "internal/published", "internal/unionfind", "internal/digraph", "internal/spell", "internal/parallel", "internal/browser", "internal/faults", "internal/words", "internal/dynlib"},
}

// level returns the level of a package, -1 for one that has none.
func level(pkg string) int {
	for ; pkg != "."; pkg = path.Dir(pkg) {
		for k, l := range levels {
			if slices.Contains(l, pkg) {
				return k
			}
		}
	}
	return -1
}

// TestLevels: no line of the import policy leads to a higher level, and the model of
// the world and the learning side do not meet.
func TestLevels(t *testing.T) {
	const world, learning = 3, 4
	for pkg, may := range allowed {
		from := level(pkg)
		if from < 0 {
			t.Errorf("package %s has no level", pkg)
		}
		for _, dep := range strings.Fields(may) {
			if dep == "*" {
				if from > 1 {
					t.Errorf("%s may import everything, and is below the packages that decide", pkg)
				}
				continue
			}
			to := level(dep)
			switch {
			case pkg == "nn/device": // the network's arithmetic on a GPU: docs/adr/0012
			case to < from:
				t.Errorf("%s may import %s of a higher level", pkg, dep)
			case (from == world || from == world-1) && to == learning:
				t.Errorf("%s may import %s: the model of the world and the learning side do not meet", pkg, dep)
			}
		}
	}
}
