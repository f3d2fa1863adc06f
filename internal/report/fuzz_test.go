package report_test

import (
	"testing"

	"placer/internal/report"
)

// FuzzAudit: no results file makes the audit panic.
func FuzzAudit(f *testing.F) {
	f.Add([]byte(`{"format": "placer search 1", "rows": [{"method": "human", "step_time_s": 1, "evaluations": 1}]}`))
	f.Add([]byte(`{"format": "placer compare 1"}`))
	f.Add([]byte(`{"format": "placer compare 2"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if found, checked, err := report.Audit(data); err == nil && len(found) > checked {
			t.Errorf("%d of %d figures differ", len(found), checked)
		}
	})
}
