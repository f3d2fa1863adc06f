package report

import (
	"github.com/olekukonko/tablewriter/tw"

	"placer/internal/compare"
	"placer/units"
)

// Cells is a table as text, for pages that draw it themselves.
type Cells struct {
	Head   []string
	Number []bool     // by column: it holds numbers, which stand to the right
	Rows   [][]string // [rows][columns]
}

func (t *table) cells() Cells {
	c := Cells{Head: t.head, Rows: t.rows}
	for _, a := range t.align {
		c.Number = append(c.Number, a == tw.AlignRight)
	}
	return c
}

// Cells returns the table of methods.
func (s *Search) Cells() Cells { return s.table().cells() }

// Notes returns what the table of methods leaves out.
func (s *Search) Notes() []string { return s.notes() }

// DeviceCells returns the table of devices.
func (s *Simulation) DeviceCells() Cells { return s.deviceTable().cells() }

// LinkCells returns the table of the links that carry something.
func (s *Simulation) LinkCells() Cells {
	t := newTable("link", ">carries", ">busy", ">of step")
	for _, l := range s.Links {
		if l.Busy > 0 || l.Bytes > 0 {
			t.row(l.Name, units.Bytes(l.Bytes), seconds(l.Busy), percent(l.Busy, s.StepTime))
		}
	}
	return t.cells()
}

// ComparisonCells returns the tables of a comparison, rows and totals, and its notes.
func ComparisonCells(c *compare.Comparison) (rows, totals Cells, notes []string) {
	return comparisonRows(c).cells(), comparisonTotals(c).cells(), comparisonNotes(c)
}

// DescribeComparison says in a line what was compared.
func DescribeComparison(c *compare.Comparison) string { return describe(c) }

// Cells returns the tables of the cards, products, links and, where there are any, fits.
func (h Hardware) Cells() (all []Cells) {
	for _, t := range h.tables() {
		all = append(all, t.cells())
	}
	return all
}
