package pipedream_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"placer/graph/formats/pipedream"
	"placer/internal/published"
)

func TestConfRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := pipedream.NewConf(rapid.SliceOfN(rapid.IntRange(1, 16), 1, 12).Draw(t, "replicas"))
		var b bytes.Buffer
		if err := want.Write(&b); err != nil {
			t.Fatal(err)
		}
		got, err := pipedream.ReadConf(b.Bytes(), "conf.json")
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("read %v, error %v, want %v of %s", got, err, want, b.String())
		}
	})
}

func TestConfErrors(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{`{"module_to_stage_map": [0, 1, 1], "stage_to_rank_map": {"0": [0], 1: [1]}}`, "invalid character '1'"}, // as published for vgg16, 4 GPUs
		{`{"module_to_stage_map": [0], "stage_to_rank_map": {"0": [0]}}{}`, "data after the end"},
		{`{"module_to_stage_map": [], "stage_to_rank_map": {"0": [0]}}`, "0 modules and 1 stage"},
		{`{"module_to_stage_map": [0, 1], "stage_to_rank_map": {"0": [0], "2": [1]}}`, "stage 1 of 2 has no ranks"},
		{`{"module_to_stage_map": [0, 1], "stage_to_rank_map": {"0": [0], "1": [0]}}`, "stage 1: rank 0 is negative or taken"},
		{`{"module_to_stage_map": [0, 2], "stage_to_rank_map": {"0": [0], "1": [1]}}`, "module 1 is in stage 2 after stage 0"},
		{`{"module_to_stage_map": [0, 0], "stage_to_rank_map": {"0": [0], "1": [1]}}`, "ends with stage 0"},
		{`{"ranks": 4}`, `unknown field "ranks"`},
	} {
		if _, err := pipedream.ReadConf([]byte(c.data), "conf.json"); err == nil || !strings.HasPrefix(err.Error(), "conf.json: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.data, err, c.want)
		}
	}
}

// TestPublishedConfs reads every published configuration but the one that is no
// JSON.
func TestPublishedConfs(t *testing.T) {
	dir := published.Folder(t, "pipedream-profiles")
	paths, _ := filepath.Glob(filepath.Join(dir, "stage_conf", "*", "*", "*.json"))
	if len(paths) == 0 {
		t.Fatalf("no configurations in %s", dir)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		broken := strings.HasSuffix(path, filepath.Join("vgg16", "gpus=4", "mp_conf.json"))
		if _, err := pipedream.ReadConf(data, path); (err != nil) != broken {
			t.Errorf("error %v", err)
		}
	}
}
