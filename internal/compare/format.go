package compare

import "fmt"

// Format names the version of Comparison as a JSON document.
const Format = "placer compare 2"

// format1 is the version before. There a case failed for a method also where the reference
// alone had no placement, and two trials without one were a tie.
const format1 = "placer compare 1"

// IsFormat reports whether name is a version of Comparison that is read.
func IsFormat(name string) bool { return name == Format || name == format1 }

// Current returns c, which was read from a file of any version, as this version has it.
func (c *Comparison) Current() (*Comparison, error) {
	switch c.Format {
	case Format:
		return c, nil
	case format1:
		return Summarise(c.Matrix, c.Trials), nil
	}
	return nil, fmt.Errorf("format is %q, want %q", c.Format, Format)
}

// asFormat1 gives c, as Summarise returns it, the counts of format1.
func (c *Comparison) asFormat1() {
	c.Format = format1
	failed := map[Cell]bool{}
	for i := range c.Trials {
		failed[c.Trials[i].Cell] = !c.Trials[i].Feasible()
	}
	for k := range c.Totals {
		t := &c.Totals[k]
		t.Failed = -t.Cases
		for i := range c.Rows {
			if c.Rows[i].Method == t.Method {
				t.Failed++
			}
		}
		for cell, ours := range failed {
			if cell.Method == t.Method && ours && failed[Cell{cell.Case, c.Matrix.Against, cell.Seed}] {
				t.Ties++
			}
		}
	}
}
