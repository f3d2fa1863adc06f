package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"placer/internal/cli"
	"placer/units"
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

// run runs a command and returns what it printed.
func run(t *testing.T, args ...string) []byte {
	t.Helper()
	var out, said bytes.Buffer
	if code := cli.Main(args, bytes.NewReader(nil), &out, &said); code != 0 {
		t.Fatalf("%v: exit %d: %s", args, code, said.String())
	}
	return out.Bytes()
}

// TestReportHasTheNumbersOfTheDocuments: the report of the recorded run carries its
// result.json, and of its plan's step what simulate --json says, key by key; and the
// step time, the bound and the fullest device stand on the page as the terminal has them.
func TestReportHasTheNumbersOfTheDocuments(t *testing.T) {
	page := string(run(t, "report", "gnmt8", "-o", "-"))
	packed := regexp.MustCompile(`id="timeline-data">([^<]*)<`).FindStringSubmatch(page)
	if packed == nil {
		t.Fatal("the page has no data")
	}
	text, err := base64.RawURLEncoding.DecodeString(packed[1])
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	parse := func(text []byte) (document map[string]any) {
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		return document
	}
	head := parse(data[4 : 4+binary.LittleEndian.Uint32(data)])

	result, err := os.ReadFile("gnmt8/result.json")
	if err != nil {
		t.Fatal(err)
	}
	want := parse(result)
	if !reflect.DeepEqual(head["search"], any(want)) {
		t.Error("the search of the page is not result.json")
	}
	simulated := parse(run(t, "simulate", "--workload", "gnmt8", "--gpus", "8", "--plan", "gnmt8/plan.json", "--json"))
	got := head["simulation"].(map[string]any)
	for _, key := range []string{"graph", "machine", "method", "kernels", "step_time_s", "feasible", "devices", "links"} {
		if !reflect.DeepEqual(got[key], simulated[key]) {
			t.Errorf("%s: the page has %v, simulate says %v", key, got[key], simulated[key])
		}
	}
	if step := want["best"].(map[string]any)["step_time_s"]; head["step_time_s"] != step || got["step_time_s"] != step {
		t.Errorf("the step takes %v on the page, %v simulated, %v in result.json", head["step_time_s"], got["step_time_s"], step)
	}
	best := want["best"].(map[string]any)
	peak := 0.0
	for _, b := range best["peak_bytes"].([]any) {
		peak = max(peak, b.(float64))
	}
	for _, shown := range []string{
		"<dd>" + units.Seconds(best["step_time_s"].(float64)).String() + " <small>by " + best["method"].(string),
		"<dd>" + units.Seconds(want["lower_bound_s"].(float64)).String() + "</dd>",
		"<dd>" + units.Bytes(peak).String() + "</dd>",
	} {
		if !strings.Contains(page, shown) {
			t.Errorf("the page lacks %q", shown)
		}
	}
}
