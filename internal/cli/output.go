package cli

import (
	"io"

	"github.com/spf13/cobra"

	"placer/internal/fsx"
	"placer/internal/jsonx"
)

// document is a result that can be written for people and for programs.
type document interface{ WriteText(io.Writer) error }

func (c *console) print(asJSON bool, d document) error {
	c.tellUntold()
	if asJSON {
		return jsonx.Write(c.out, d)
	}
	return c.writeText(d.WriteText)
}

// printing gives cmd the flag --json, and what prints the document that run returns.
func (c *console) printing(cmd *cobra.Command, run func(*cobra.Command) (document, error)) *cobra.Command {
	asJSON := cmd.Flags().Bool("json", false, "print one JSON document")
	cmd.Args = noArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		d, err := run(cmd)
		if err != nil {
			return err
		}
		return c.print(*asJSON, d)
	}
	return cmd
}

// emit writes what write writes to the file at path, if there is a path, and prints
// d. For "-" the first goes to stdout in place of d.
func (c *console) emit(path string, write func(io.Writer) error, asJSON bool, d document) error {
	if path != "" {
		if err := c.writeOutput(path, write); err != nil || path == "-" {
			return err
		}
	}
	return c.print(asJSON, d)
}

// checkOutput reports that two things want stdout, or that path cannot be written.
func checkOutput(path string, asJSON bool) error {
	if asJSON && path == "-" {
		return usagef("--json and -o - both want stdout")
	}
	return writable(path)
}

// writeOutput writes what write writes to the file at path, or to stdout for "-".
func (c *console) writeOutput(path string, write func(io.Writer) error) error {
	c.tellUntold()
	if path == "-" {
		return write(c.out)
	}
	return fsx.WriteFile(path, write)
}

// writable asks of each path that is a file's whether it can be written, so that a
// mistake in it costs no search.
func writable(paths ...string) error {
	for _, path := range paths {
		if path == "" || path == "-" {
			continue
		}
		if err := fsx.Writable(path); err != nil {
			return err
		}
	}
	return nil
}
