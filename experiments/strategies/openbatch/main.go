// Command openbatch writes an ONNX model whose first dimension is called batch instead of
// being a number, so that its batch can be divided: openbatch IN OUT.
package main

import (
	"errors"
	"fmt"
	"os"

	"placer/internal/published"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "openbatch:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("want two files, IN and OUT")
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	if data, err = published.OpenBatch(data); err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return os.WriteFile(args[1], data, 0o644)
}
