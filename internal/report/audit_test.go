package report_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

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

func TestAuditErrors(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{`{"format": "placer plan 1"}`, `format is "placer plan 1", want "placer compare 1" or "placer search 1"`},
		{`{"format": "placer search 1"}`, "the document has no rows"},
		{`{"format": "placer search 1", "rws": []}`, `unknown field "rws"`},
		{``, "unexpected end of JSON input"},
	} {
		if _, _, err := report.Audit([]byte(c.data)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.data, err, c.want)
		}
	}
}
