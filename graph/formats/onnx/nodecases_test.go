package onnx

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"placer/graph"
)

// readCases returns the models of nodecases.tar.gz and their output shapes.
func readCases(t testing.TB) (models map[string][]byte, shapes map[string]string, names []string) {
	t.Helper()
	f, err := os.Open("testdata/nodecases.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	models, shapes = map[string][]byte{}, map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return models, shapes, names
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Name != "index.tsv" {
			models[h.Name] = data
			continue
		}
		for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
			name, s, _ := strings.Cut(line, "\t")
			shapes[name] = s
			names = append(names, name)
		}
	}
}

// notInferred lists the cases whose shapes cannot be had from the file alone,
// or whose operators are left out.
var notInferred = map[string]string{
	"test_loop11":            "slices by the number of the iteration",
	"test_identity_sequence": "a sequence",
}

// TestOperators compares the inferred output shapes with those that the
// reference implementation computed, for the operator tests of the standard:
// every operator, its variants, and its expansion into a function's nodes.
func TestOperators(t *testing.T) {
	models, shapes, names := readCases(t)
	if len(names) < 1500 {
		t.Fatalf("%d cases, want the whole set", len(names))
	}
	refused := 0
	for _, name := range names {
		imp, err := inferred(models[name+".onnx"])
		if err != nil {
			if notInferred[name] == "" {
				t.Errorf("%s: %v", name, err)
			}
			refused++
			continue
		}
		var got []string
		for i := range imp.model.graph.outputs {
			got = append(got, times(imp.root.tensors[imp.model.graph.outputs[i].name].shape))
		}
		if s := strings.Join(got, ";"); s != shapes[name] {
			t.Errorf("%s: shapes %s, want %s", name, s, shapes[name])
		}
		if _, _, err := Import(models[name+".onnx"], name, Default()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if refused > len(notInferred) {
		t.Errorf("%d of %d cases refused", refused, len(names))
	}
}

// inferred returns the importer after inference, with all tensors in its scope.
func inferred(data []byte) (*importer, error) {
	m, err := parseModel(data)
	if err != nil {
		return nil, err
	}
	imp := newImporter(m, "case", Default())
	return imp, imp.graph()
}

// times prints a shape as 2x3x4.
func times(s graph.Shape) string {
	var b strings.Builder
	for k, d := range s {
		if k > 0 {
			b.WriteByte('x')
		}
		b.WriteString(strconv.FormatInt(d, 10))
	}
	return b.String()
}

// Imported graphs survive the JSON form.
func TestJSON(t *testing.T) {
	models, _, names := readCases(t)
	for _, name := range list("light_resnet50", "gpt2_megatron", "gpt2_one_layer") {
		data, err := os.ReadFile("testdata/" + name + ".onnx")
		if err != nil {
			t.Fatal(err)
		}
		models[name+".onnx"] = data
		names = append(names, name)
	}
	for _, name := range names {
		g, _, err := Import(models[name+".onnx"], name, Default())
		if err != nil {
			continue // TestOperators knows which may
		}
		var buf bytes.Buffer
		if err := g.Write(&buf); err != nil {
			t.Fatal(err)
		}
		again, err := graph.Read(buf.Bytes(), "g.json")
		if err != nil {
			t.Fatal(err)
		}
		if again.Hash() != g.Hash() {
			t.Errorf("%s: the JSON form changed the graph", name)
		}
	}
}
