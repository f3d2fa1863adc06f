// Command placer finds device placements for neural networks; see README.md.
package main

import (
	"os"

	"placer/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
