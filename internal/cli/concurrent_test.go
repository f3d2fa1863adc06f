package cli

import (
	"strings"
	"testing"
)

// A second search in the folder of one that runs is refused, and leaves it alone.
func TestRunFolderInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	until(t, dir, "run/state/random-best.json", true, append(searchArgs, "run", "--budget", "1h")...)
	second, _, says := process(t, dir, "search", "--resume", "run")
	if code := exitOf(second.Wait()); code != exitFailed || !strings.Contains(says.String(), "is in use by another process") {
		t.Errorf("exit %d: %s", code, says)
	}
}
