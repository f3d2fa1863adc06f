package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPictures: the pictures of docs are what the recorded plan gives.
func TestPictures(t *testing.T) {
	folder := t.TempDir()
	if err := draw("trfxl4.json", folder); err != nil {
		t.Fatal(err)
	}
	for _, th := range themes() {
		name := "step-" + th.name + ".svg"
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("../../docs/pictures", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("docs/pictures/%s is not what trfxl4.json gives: run make pictures and look at it", name)
		}
	}
}

// TestReadme: README.md gives the step times of the picture.
func TestReadme(t *testing.T) {
	steps, bound, err := simulate("trfxl4.json")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{steps[0].makespan.String(), steps[1].makespan.String(), bound.String()} {
		if !strings.Contains(string(readme), want) {
			t.Errorf("README.md lacks %q, a step time of its picture", want)
		}
	}
}
