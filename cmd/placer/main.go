// Command placer decides which device runs each operation of a neural network, in
// which order, and which operations are fused into one kernel; see README.md.
package main

import (
	"os"

	"placer/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
