package report

import (
	"fmt"
	"io"

	"placer/units"
)

// page writes text and tables to w. After an error of w it writes nothing more.
type page struct {
	w    io.Writer
	err  error
	draw func(*table, io.Writer) error
}

func newPage(w io.Writer) *page { return &page{w: w, draw: (*table).write} }

func newMarkdown(w io.Writer) *page { return &page{w: w, draw: (*table).writeMarkdown} }

func (p *page) printf(format string, a ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, a...)
	}
}

func (p *page) table(t *table) {
	if p.err == nil {
		p.err = p.draw(t, p.w)
	}
}

// lines writes each text on a line of its own, behind mark.
func (p *page) lines(mark string, texts ...string) {
	for _, t := range texts {
		p.printf("%s%s\n", mark, t)
	}
}

// seconds is a number of a document with its unit.
func seconds(s float64) units.Seconds { return units.Seconds(s) }
