//go:build unix

package cli

import (
	"os/signal"
	"syscall"
)

// ignoreFileLimit makes a write beyond the limit on a file's size (ulimit -f) an error
// like any other, where Go would end the program with a stack trace.
func ignoreFileLimit() { signal.Ignore(syscall.SIGXFSZ) }
