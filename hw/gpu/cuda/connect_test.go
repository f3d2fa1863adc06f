//go:build linux

package cuda

import (
	"testing"

	"github.com/ebitengine/purego"
)

// TestConnect: the driver, which reads the environment of C, is asked for all
// hardware queues, unless the user has named a number.
func TestConnect(t *testing.T) {
	const name = "CUDA_DEVICE_MAX_CONNECTIONS"
	var getenv func(string) string
	purego.RegisterLibFunc(&getenv, purego.RTLD_DEFAULT, "getenv")
	for _, c := range [][2]string{{"", "32"}, {"4", "4"}} {
		t.Setenv(name, c[0])
		if err := connect(); err != nil {
			t.Fatal(err)
		}
		if got := getenv(name); got != c[1] {
			t.Errorf("%q became %q in the environment of C, want %q", c[0], got, c[1])
		}
	}
}
