//go:build unix && long

package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// smallDisk mounts a file system of size in a new folder, and returns the folder and what
// mounts it again with other options.
func smallDisk(t *testing.T, size string) (dir string, remount func(options string)) {
	t.Helper()
	dir = t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no small disk can be mounted: %s", out)
	}
	t.Cleanup(func() { exec.Command("umount", "-l", dir).Run() })
	return dir, func(options string) {
		if out, err := exec.Command("mount", "-o", "remount,"+options, dir).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", options, err, out)
		}
	}
}

// refused has l run in dir, which is to fail with one line that says what, and leave nothing
// half written; a run that fits ends well.
func (l *longRun) refused(t *testing.T, dir, what string) (failed bool) {
	t.Helper()
	cmd, stderr := l.start(t, dir)
	err := cmd.Wait()
	if code := exitOf(err); err != nil && (code != exitFailed || !oneLineOnly(stderr.String()) || !strings.Contains(stderr.String(), what)) {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	if _, there := os.Stat(filepath.Join(dir, "run")); there == nil {
		whole(t, filepath.Join(dir, "run"))
	}
	clean(t, dir)
	return err != nil
}

// TestFullDiskOfARun: a run whose disk is full ends with one line, and goes on to the same
// result when there is room.
func TestFullDiskOfARun(t *testing.T) {
	for _, l := range longRuns() {
		t.Run(l.name, func(t *testing.T) {
			want, _ := l.undisturbed(t)
			full := 0
			for _, size := range []string{"4k", "8k", "16k", "32k", "64k", "256k", "1m"} {
				dir, remount := smallDisk(t, size)
				if l.refused(t, dir, "no space left on device") {
					full++
				}
				remount("size=256m")
				l.finish(t, dir)
				l.same(t, dir, want)
			}
			if full == 0 {
				t.Error("no disk was full: the test shows nothing")
			}
			t.Logf("%d full disks", full)
		})
	}
}

// TestReadOnlyFolder: a folder that takes no files is told in one line, before the work.
func TestReadOnlyFolder(t *testing.T) {
	for _, l := range longRuns() {
		t.Run(l.name, func(t *testing.T) {
			dir, remount := smallDisk(t, "64m")
			remount("ro")
			if !l.refused(t, dir, "read-only file system") {
				t.Error("it ended well")
			}
		})
	}
}

// TestFileLimit: a limit on the size of files (ulimit -f) is an error like a full disk.
func TestFileLimit(t *testing.T) {
	for _, l := range longRuns() {
		t.Run(l.name, func(t *testing.T) {
			dir := t.TempDir()
			cmd, _, stderr := program(t, dir, l.args...)
			limited := exec.Command("sh", append([]string{"-c", `ulimit -f 2; exec "$0" "$@"`}, cmd.Args...)...)
			limited.Dir, limited.Env, limited.Stderr = cmd.Dir, cmd.Env, stderr
			err := limited.Run()
			if err != nil && (exitOf(err) != exitFailed || !oneLineOnly(stderr.String()) || !strings.Contains(stderr.String(), "file too large")) {
				t.Errorf("%v\n%s", err, stderr)
			}
			whole(t, filepath.Join(dir, "run"))
			clean(t, dir)
		})
	}
}

// TestUnwritableStdout: a command whose output has nowhere to go says so in one line; what a
// run keeps in its folder is there.
func TestUnwritableStdout(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here:", err)
	}
	defer full.Close()
	all := longRuns()
	for _, args := range [][]string{
		{"version"}, {"workloads"}, {"machines"}, {"import", "--workload", smallGraph}, {"compare", "--list"}, {"--help"}, {"search", "--help"},
		{"place", "-q", "--workload", smallGraph, "--gpus", "2"}, {"strategies", "-q", "--workload", "llama:layers=1", "--gpus", "2"}, {"verdict", "-q", "--workload", smallGraph, "--counts", "1,2", "--budget", "2s"},
	} {
		all = append(all, longRun{name: strings.Join(args, " "), args: args})
	}
	for _, l := range all {
		t.Run(l.name, func(t *testing.T) {
			dir := t.TempDir()
			cmd, _, stderr := program(t, dir, l.args...)
			cmd.Stdout = full
			if code := exitOf(cmd.Run()); code != exitFailed || !oneLineOnly(stderr.String()) || !strings.Contains(stderr.String(), "no space left on device") {
				t.Errorf("exit %d\n%s", code, stderr)
			}
			for _, name := range l.files {
				read(t, dir, filepath.Join("run", name))
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			cmd, _, stderr = program(t, t.TempDir(), l.args...)
			cmd.Stdout = w
			err = cmd.Run()
			w.Close()
			if err == nil || strings.Contains(stderr.String(), "goroutine") || strings.Count(stderr.String(), "\n") > 1 {
				t.Errorf("into a closed pipe: %v\n%s", err, stderr)
			}
		})
	}
}

// TestTwoInOneFolder starts a command twice at once in one folder: one of them ends as if it
// were alone; the other says in one line that it cannot, or comes later and finds it done.
func TestTwoInOneFolder(t *testing.T) {
	for _, l := range longRuns() {
		t.Run(l.name, func(t *testing.T) {
			want, _ := l.undisturbed(t)
			refused := 0
			for range *kills {
				dir := t.TempDir()
				var errs [2]*bytes.Buffer
				var failed []string
				wait := make([]func() error, 2)
				for k := range wait {
					cmd, _, stderr := program(t, dir, l.args...)
					start(t, cmd)
					wait[k], errs[k] = cmd.Wait, stderr
				}
				for k := range wait {
					if err := wait[k](); err != nil {
						failed = append(failed, errs[k].String())
					}
				}
				for _, says := range failed {
					if !oneLineOnly(says) || !strings.Contains(says, "is in use by another process") && !strings.Contains(says, "is not empty") {
						t.Error(says)
					}
					refused++
				}
				if len(failed) > 1 {
					t.Fatal("both gave up")
				}
				l.same(t, dir, want)
			}
			if refused == 0 {
				t.Error("none was refused: the test shows nothing")
			}
			t.Logf("%d refused", refused)
		})
	}
}
