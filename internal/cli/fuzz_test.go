package cli

import (
	"os"
	"path/filepath"
	"testing"

	"placer/hw"
)

// FuzzPlacement: what check is given either is refused or is a placement of the graph.
func FuzzPlacement(f *testing.F) {
	for _, text := range []string{`{"stages": [["a"], ["b"]]}`, `{"layer1": 0, "": "gpu:1"}`, `{"device_map": {"layer1": 1}}`, `{"format": "placer schedule 1"}`, `{"format": "placer plan 1", "devices": {}}`} {
		f.Add([]byte(text))
	}
	m, err := hw.Take("p100", 2, false)
	if err != nil {
		f.Fatal(err)
	}
	c := newConsole(nil, nil, nil)
	l, err := c.loadGraph(&graphFlags{Workload: smallGraph})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "p.json")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		given := l
		p, err := c.placement(path, &given, m)
		if err == nil && p.Device != nil && len(p.Device) != given.NumOps() {
			t.Errorf("%d ops placed, the graph has %d", len(p.Device), given.NumOps())
		}
	})
}

// FuzzSettings: a file of settings either is refused or names what a search can have.
func FuzzSettings(f *testing.F) {
	f.Add([]byte(`{"format": "placer run 1", "workload": "rnnlm2", "gpus": 2, "budget": {"evaluations": 10}}`))
	f.Add([]byte(`{"format": "placer run 1", "measuring": {"repeats": 2}, "hub": {"address": "127.0.0.1:0"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config.json"), data, 0o644); err != nil {
			t.Fatal(err)
		}
		c := newConsole(nil, nil, nil)
		k, err := c.readRunSettings(dir)
		if err == nil {
			_, _ = k.options()
		}
	})
}
