package cli

import (
	"maps"
	"testing"

	"github.com/spf13/pflag"
)

// Sizes are given once: a second one of a name is refused, unless it is the same, as where the command
// line is read again over a file of settings, whose sizes it changes.
func TestDims(t *testing.T) {
	var sizes map[string]int64
	fl := pflag.NewFlagSet("", pflag.ContinueOnError)
	addDims(fl, &sizes)
	line := []string{"--dim", "batch=2,seq=8", "--dim", "past=1"}
	if err := fl.Parse(line); err != nil {
		t.Fatal(err)
	}
	sizes = map[string]int64{"batch": 4, "frames": 7}
	if err := fl.Parse(line); err != nil {
		t.Fatal(err)
	}
	if want := map[string]int64{"batch": 2, "seq": 8, "past": 1, "frames": 7}; !maps.Equal(sizes, want) {
		t.Errorf("sizes %v, want %v", sizes, want)
	}
	for _, wrong := range []string{"batch=4", "seq", "seq=x", "seq=8,past=2"} {
		if err := fl.Set("dim", wrong); err == nil {
			t.Errorf("%s: no error", wrong)
		}
	}
}

// A size may be none, as of a cache that is empty, but for the samples.
func TestEmptyDims(t *testing.T) {
	for text, want := range map[string]string{"past=0": "", "batch=0": "--dim batch=0: want at least 1", "past=-1": "--dim past=-1: want at least 0"} {
		f := graphFlags{Graph: "m.onnx"}
		v := &dimsValue{&f.Dims, map[string]int64{}}
		if err := v.Set(text); err != nil {
			t.Fatal(err)
		}
		if err := f.check(); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
