package report_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"placer/internal/compare"
	"placer/internal/report"
)

// The recorded searches of the project agree with their own times, and a
// falsified one is found out.
func TestAuditOfRecordedSearches(t *testing.T) {
	predicted, err := filepath.Glob("../../experiments/table2/*.json")
	if err != nil || len(predicted) == 0 {
		t.Fatalf("no recorded searches: %v", err)
	}
	measured, err := filepath.Glob("../../experiments/hardware/h200/search-*.json") // gaps are of the predictions
	if err != nil || len(measured) == 0 {
		t.Fatalf("no recorded searches that measure: %v", err)
	}
	for _, path := range append(predicted, measured...) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found, checked, err := report.Audit(data)
		if err != nil || len(found) > 0 || checked < 50 {
			t.Errorf("%s: %d checked, found %v, error %v", path, checked, found, err)
		}
		var doc map[string]any
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		doc["best"].(map[string]any)["reduction_vs_human"] = 0.9
		doc["rows"].([]any)[0].(map[string]any)["step_time_s"] = 1e-9
		bad, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		found, _, err = report.Audit(bad)
		if err != nil || len(found) < 3 {
			t.Errorf("%s: falsified, found only %v, error %v", path, found, err)
		}
	}
}

// The recorded comparisons agree with their own times, those of the first format by its
// counts. Read today, a case on which the reference alone fails is no failure of others.
func TestAuditOfRecordedComparisons(t *testing.T) {
	paths, err := filepath.Glob("../../experiments/*/compare.json")
	if err != nil {
		t.Fatal(err)
	}
	const figure6 = "../../experiments/go-figure6/run/compare.json"
	for _, path := range append(paths, figure6, "../../experiments/go-table3/run/compare.json") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if found, checked, err := report.Audit(data); err != nil || len(found) > 0 || checked < 500 {
			t.Errorf("%s: %d checked, found %v, error %v", path, checked, found, err)
		}
		if path != figure6 {
			continue
		}
		var c compare.Comparison
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatal(err)
		}
		now, err := c.Current()
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range now.Totals {
			want := 0
			if x.Method == c.Matrix.Against { // does not fit one GPU six times
				want = 6
			}
			if x.Failed != want || x.Cases != 12 {
				t.Errorf("%s: %d failed, %d cases, want %d and 12", x.Method, x.Failed, x.Cases, want)
			}
		}
	}
}

func TestAuditErrors(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{`{"format": "placer plan 1"}`, `format is "placer plan 1", want "placer compare 2" or "placer search 1"`},
		{`{"format": "placer search 1"}`, "the document has no rows"},
		{`{"format": "placer search 1", "rws": []}`, `unknown field "rws"`},
		{``, "unexpected end of JSON input"},
	} {
		if _, _, err := report.Audit([]byte(c.data)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.data, err, c.want)
		}
	}
}
