//go:build unix

package cli

import (
	"io"
	"os"
	"os/signal"
	"syscall"
)

// ignoreFileLimit makes a write beyond the limit on a file's size (ulimit -f) an error
// like any other, where Go would end the program with a stack trace.
func ignoreFileLimit() { signal.Ignore(syscall.SIGXFSZ) }

// endingSignals are those upon which a command ends with what it has. The end of its terminal
// or connection is one, unless the program was started so as not to hear of it (nohup).
func endingSignals() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	return all
}

// unbroken returns stderr as a file whose reader may end without ending the program, as a write to
// the file of number 2 does: a search goes on where nobody reads its progress any more.
func unbroken(stderr io.Writer) io.Writer {
	f, ok := stderr.(*os.File)
	if !ok || f.Fd() != 2 {
		return stderr
	}
	other, err := syscall.Dup(2)
	if err != nil {
		return stderr
	}
	syscall.CloseOnExec(other)
	return os.NewFile(uintptr(other), f.Name())
}
