package robust_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestRecorded: README.md has every recorded row, and at least 10 robust plans have a p95 below
// that of the plain plan.
func TestRecorded(t *testing.T) {
	f, err := os.Open("rows.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma = '\t'
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for k, name := range rows[0] {
		column[name] = k
	}
	below := 0
	for _, row := range rows[1:] {
		number := func(name string) float64 {
			v, err := strconv.ParseFloat(row[column[name]], 64)
			if err != nil {
				t.Fatalf("%s: %v", row[0], err)
			}
			return v
		}
		plain, robust := number("plain_p95_s"), number("robust_p95_s")
		if robust < plain {
			below++
		}
		line := fmt.Sprintf("| %s | %s | %s | %.1f ms | %.1f ms | %+.2f%% | %+.2f%% |", row[0], row[column["gpus"]], row[column["evaluations"]],
			1e3*plain, 1e3*robust, 100*(robust/plain-1), 100*(number("robust_step_s")/number("plain_step_s")-1))
		if !strings.Contains(string(page), line) {
			t.Errorf("README.md lacks %s", line)
		}
	}
	if below < 10 {
		t.Errorf("the robust plan is below the plain one on %d rows, want 10 of 14", below)
	}
}
