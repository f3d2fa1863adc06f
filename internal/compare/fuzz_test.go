package compare_test

import (
	"os"
	"path/filepath"
	"testing"

	"placer/internal/compare"
)

// FuzzOpen: the folder of a comparison either is refused or opens twice with the same
// trials.
func FuzzOpen(f *testing.F) {
	m := matrix([]string{"human"}, 1, 1)
	dir := f.TempDir()
	j, err := compare.Create(dir, &m)
	if err != nil {
		f.Fatal(err)
	}
	j.Close()
	text, err := os.ReadFile(filepath.Join(dir, compare.MatrixFile))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, []byte(`{"case":"w0 on p100x2","method":"human","seed":1}`+"\n{"), []byte(`{"case":"w0 on p100x2","graph_hash":"g"}`+"\n{"))
	f.Fuzz(func(t *testing.T, matrix, trials, inputs []byte) {
		dir := t.TempDir()
		for name, text := range map[string][]byte{compare.MatrixFile: matrix, compare.TrialsFile: trials, compare.InputsFile: inputs} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		j, m, err := compare.Open(dir)
		if err != nil {
			return
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		again, _, err := compare.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if len(again.Trials()) != len(j.Trials()) || len(j.Trials()) > len(m.Cells()) {
			t.Errorf("%d trials, then %d, of %d cells", len(j.Trials()), len(again.Trials()), len(m.Cells()))
		}
	})
}
