package report_test

import (
	"bytes"
	"strings"
	"testing"

	"placer/internal/report"
)

func TestRegal(t *testing.T) {
	paper, gap, low, high := 0.195, 0.0, 0.19, 0.23
	doc := report.Regal{
		Format: report.RegalFormat, Task: "synthetic", Graphs: 2, MeanOps: 120, Devices: 2, Evaluations: 5000, Seed: 1,
		Rows: []report.RegalRow{
			{Method: "phases", Improvement: 0.21, Median: 0.22, Low: &low, High: &high, BoundGap: 0.0001, Graphs: 2, Wins: 2, Seconds: 0.1, PublishedImprovement: &paper, PublishedGap: &gap},
			{Method: "none"},
			{Method: "large", Infeasible: 2},
		},
		Notes: []string{"reading: data blocks"},
	}
	var text, table bytes.Buffer
	if err := doc.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 graphs of 120 ops", "21.00%", "19.50%", "22.00%", "19.00% to 23.00%", "0.0100%", "2/0/0", "100.0", "does not apply", "large", "fits on none of 2", "reading: data blocks"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in:\n%s", want, text.String())
		}
	}
	if err := doc.WriteCSV(&table); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(strings.TrimSpace(table.String()), "\n"); len(lines) != 4 || !strings.HasPrefix(lines[1], "synthetic,phases,0.21,0.195,0.22,0.19,0.23,0,0,0.0001,") || !strings.HasPrefix(lines[2], "synthetic,none,0,,0,,,0,,") {
		t.Errorf("csv:\n%s", table.String())
	}
}
