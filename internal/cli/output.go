package cli

import (
	"errors"
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
// d. For "-" the first goes to stdout in place of d. What cannot be written costs nothing of
// what is printed.
func (c *console) emit(path string, write func(io.Writer) error, asJSON bool, d document) error {
	var unwritten error
	if path != "" {
		if unwritten = c.writeOutput(path, write); path == "-" {
			return unwritten
		}
	}
	return errors.Join(unwritten, c.print(asJSON, d))
}

// save prints d, and writes it to the file at path as JSON, if there is a path. For "-" the
// JSON goes to stdout in place of d. What cannot be written costs nothing of what is
// printed.
func (c *console) save(path string, asJSON bool, d document) error {
	err := c.print(asJSON || path == "-", d)
	if path == "" || path == "-" {
		return err
	}
	return errors.Join(err, fsx.WriteFile(path, func(w io.Writer) error { return jsonx.Write(w, d) }))
}

// checkOutput reports that two things want stdout, or that path cannot be written.
func checkOutput(path string, asJSON bool) error { return checkStdout("-o", path, asJSON) }

// checkStdout is checkOutput of the path of a flag.
func checkStdout(flag, path string, asJSON bool) error {
	if asJSON && path == "-" {
		return usagef("--json and %s - both want stdout", flag)
	}
	return writable(path)
}

// fileOnly reports that path, of a flag of something beside the result, is stdout, where
// the result goes, or that it cannot be written.
func fileOnly(flag, path string) error {
	if path == "-" {
		return usagef("%s -: want a file, stdout has the result", flag)
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
