package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"placer/hw"
	"placer/internal/bench"
	"placer/internal/compare"
	"placer/internal/jsonx"
	"placer/placer/problem"
)

// formFlags choose the form in which trials are printed.
type formFlags struct{ json, csv, markdown bool }

// add adds the flags, which exclude each other.
func (f *formFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	cmd.Flags().BoolVar(&f.csv, "csv", false, "print the rows as CSV")
	cmd.Flags().BoolVar(&f.markdown, "markdown", false, "print Markdown tables")
	exclusive(cmd, "json", "csv", "markdown")
}

// printTables prints what the trials in dir came to. stopped is the error of their
// run, goOn how they are gone on with.
func (c *console) printTables(f *formFlags, doc bench.Tables, dir string, stopped error, goOn string) error {
	if stopped != nil && !errors.Is(stopped, context.Canceled) {
		return stopped
	}
	var err error
	switch {
	case f.json:
		err = jsonx.Write(c.out, doc)
	case f.csv:
		err = doc.WriteCSV(c.out)
	case f.markdown:
		err = doc.WriteMarkdown(c.out)
	default:
		err = c.writeText(doc.WriteText)
	}
	if err != nil {
		return err
	}
	if stopped != nil {
		return interrupted("interrupted; to continue: " + goOn + " " + dir)
	}
	c.say("results in %s", dir)
	return nil
}

// loadCase loads a case of a comparison.
func (c *console) loadCase(x compare.Case) (problem.Source, *hw.Machine, error) {
	dims, err := x.Sizes()
	if err != nil {
		return problem.Source{}, nil, err
	}
	l, m, err := c.load(&inputFlags{graphFlags{Workload: x.Workload, Graph: x.Graph, Dims: dims}, machineFlags{GPU: x.GPU, Machine: x.Machine, GPUs: x.GPUs}})
	return l.Source, m, err
}
