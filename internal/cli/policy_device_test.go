package cli

import (
	"os"
	"strings"
	"testing"

	"placer/hw/gpu/fake"
)

// TestPolicyDeviceUnused: a device for a network that no method of the search uses is
// refused before anything is written.
func TestPolicyDeviceUnused(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		more []string
		want string
	}{
		{nil, "GO-one learns place,schedule,fuse together without its network, so the device would stand idle; --tasks place uses it"},
		{[]string{"--tasks", "place,fuse"}, "GO-one learns place,fuse together"},
		{[]string{"--tasks", "place", "--methods", "human,heft"}, "GO-one is not among the methods"},
		{[]string{"--objective", "memory"}, ""}, // placement alone
	} {
		args := append([]string{"search", "--workload", "rnnlm:layers=1,unroll=2", "--gpus", "2", "--policy-device", "cuda", "--print-config"}, c.more...)
		switch code, _, stderr := onFake(t, fake.Default(), args...); {
		case c.want == "" && code != 0, c.want != "" && (code != 2 || !strings.Contains(stderr, c.want)):
			t.Errorf("%v: code %d: %s", c.more, code, stderr)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
