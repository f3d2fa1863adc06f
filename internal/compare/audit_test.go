package compare_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"placer/internal/compare"
)

// Whatever aggregate is falsified, the audit names it.
func TestAuditFindsEveryChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := matrix([]string{"human", "ours", "other"}, 2, 6)
		data := encode(t, compare.Summarise(m, drawTrials(t, m)))
		if found, checked, err := compare.Audit(data); err != nil || len(found) > 0 || checked < 100 {
			t.Fatalf("%d checked, found %v, error %v in an honest file", checked, found, err)
		}
		var doc map[string]any
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		part := rapid.SampledFrom([]string{"rows", "totals"}).Draw(t, "part")
		list := doc[part].([]any)
		k := rapid.IntRange(0, len(list)-1).Draw(t, "entry")
		entry := list[k].(map[string]any)
		var keys []string
		for _, key := range []string{"median_step_time_s", "reduction", "gap", "trials", "wins", "losses", "worst_regression", "low_step_time_s", "search_time_ratio"} {
			if _, ok := entry[key].(float64); ok {
				keys = append(keys, key)
			}
		}
		if len(keys) == 0 {
			return
		}
		key := rapid.SampledFrom(keys).Draw(t, "key")
		entry[key] = entry[key].(float64) + 1
		found, _, err := compare.Audit(encode(t, doc))
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%s[%d].%s", part, k, key); len(found) != 1 || found[0].Place != want {
			t.Fatalf("found %v, want %s", found, want)
		}
	})
}

func TestAuditErrors(t *testing.T) {
	m := matrix([]string{"human"}, 1, 1)
	good := string(encode(t, compare.Summarise(m, []compare.Trial{{Cell: m.Cells()[0], StepTime: 1}})))
	for _, c := range []struct{ name, data, want string }{
		{"trailing", good + "{}", "data after the end"},
		{"foreign trial", strings.Replace(good, `"seed":1`, `"seed":2`, 1), "trials[0]: human on w0 on p100x2 with seed 2 is not of this comparison"},
		{"no cases", strings.Replace(good, `"seeds":[1]`, `"seeds":[]`, 1), "matrix: nothing to run"},
	} {
		if _, _, err := compare.Audit([]byte(c.data)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}
