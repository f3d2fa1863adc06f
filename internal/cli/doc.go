// Package cli owns the command line: flags, standard streams, signals, the clock
// and exit codes. Nothing below it knows of these.
package cli
