package search

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzOpenRun: a run folder either is refused or opens twice to the same memory, whatever its
// state files and its progress hold.
func FuzzOpenRun(f *testing.F) {
	f.Add([]byte(`{"format": "placer state 1", "seconds": 1.5, "first_feasible_s": 0.5}`),
		[]byte(`{"format": "placer state 1", "method": "human", "kind": "baseline", "ended": true, "evaluations": 1, "cpu_seconds": 0, "step_time_s": 1, "overflow": 0, "device": "AAE="}`),
		[]byte("{\"seconds\": 1}\n{\"sec"))
	f.Fuzz(func(t *testing.T, state, method, progress []byte) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, stateFolder), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string][]byte{ConfigFile: {}, stateFile: state, filepath.Join(stateFolder, "m.json"): method, ProgressFile: progress} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		r, m, err := OpenRun(dir)
		if err != nil {
			return
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		again, n, err := OpenRun(dir)
		if err != nil {
			t.Fatal(err)
		}
		again.Close()
		if n.Seconds != m.Seconds || m.Seconds < 0 || len(n.Ended) != len(m.Ended) || len(n.Running) != len(m.Running) {
			t.Errorf("%+v, then %+v", m, n)
		}
	})
}
