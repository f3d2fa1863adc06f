package hw

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// switched is two GPUs behind a switch that adds up; the error cases change one place of it.
const switched = `{
  "format": "placer machine 1",
  "name": "switched",
  "models": {
    "H": {"kind": "gpu", "capacity": "4 GB", "memory_bandwidth": "30 GB/s", "peak": {"f32": "90 GFLOP/s"}, "launch": "3 us", "sms": 1, "source": "test"}
  },
  "devices": [{"name": "gpu:[0-1]", "model": "H"}],
  "cables": [{"ends": ["gpu:[0-1]", "nvswitch"], "bandwidth": "290 GB/s", "latency": "6 us", "source": "test",
              "medium": "nvlink", "collective_bandwidth": "370 GB/s", "sharp": true}]
}
`

// TestMedium: what links are of is read, checked, written and read again, and no hash depends on it.
func TestMedium(t *testing.T) {
	m, err := Read(strings.NewReader(switched))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := m.Links[0].Medium, (Medium{NVLink, 370e9, true}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	var file bytes.Buffer
	if err := m.Write(&file); err != nil {
		t.Fatal(err)
	}
	again, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, again); diff != "" {
		t.Errorf("written and read again:\n%s", diff)
	}
	plain, err := Read(strings.NewReader(strings.Replace(switched, `,
              "medium": "nvlink", "collective_bandwidth": "370 GB/s", "sharp": true`, "", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if plain.Links[0].Medium != (Medium{}) || plain.Hash() != m.Hash() {
		t.Errorf("without facts: %+v, hash %.12s, with them %.12s", plain.Links[0].Medium, plain.Hash(), m.Hash())
	}
	for old, c := range map[string]struct{ to, want string }{
		`"medium": "nvlink"`:                 {`"medium": "copper"`, `line 8, column 14: cables[0]: medium is "copper", want nvlink, pcie or network`},
		`"sharp": true`:                      {`"sharp": "yes"`, `cables[0].sharp: is the string "yes", want true or false`},
		`"collective_bandwidth": "370 GB/s"`: {`"collective_bandwidth": "0 GB/s"`, "cables[0].collective_bandwidth: is"},
		`"medium": "nvlink", `:               {"", `collective_bandwidth and sharp are of links of medium "nvlink", this one has ""`},
	} {
		if _, err := Read(strings.NewReader(strings.Replace(switched, old, c.to, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.to, err, c.want)
		}
	}
}
