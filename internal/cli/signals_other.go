//go:build !unix

package cli

import (
	"io"
	"os"
	"syscall"
)

func ignoreFileLimit() {}

func endingSignals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

func steady(stderr io.Writer) io.Writer { return stderr }
