//go:build !unix

package cli

import (
	"io"
	"os"
	"syscall"
)

func ignoreFileLimit() {}

func endingSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

func unbroken(stderr io.Writer) io.Writer { return stderr }
