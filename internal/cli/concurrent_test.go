package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// A second search in the folder of one that runs is refused, and leaves it alone.
func TestRunFolderInUse(t *testing.T) {
	dir := t.TempDir()
	cmd, _, stderr := process(t, dir, append(searchArgs, "run", "--budget", "1h")...)
	await(t, cmd, filepath.Join(dir, "run", "state", "random-best.json"), stderr)
	second, _, says := process(t, dir, "search", "--resume", "run")
	if code := exitOf(second.Wait()); code != exitFailed || !strings.Contains(says.String(), "is in use by another process") {
		t.Errorf("exit %d: %s", code, says)
	}
}
