package report

import (
	"bytes"
	"io"
	"slices"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"
)

// table collects rows for tablewriter in the one look that all our tables have.
type table struct {
	head  []string
	align []tw.Align
	rows  [][]string
}

func newTable(head ...string) *table {
	t := &table{head: head, align: make([]tw.Align, len(head))}
	for i := range t.align {
		t.align[i] = tw.AlignLeft
	}
	return t
}

// right aligns columns of numbers.
func (t *table) right(columns ...int) {
	for _, c := range columns {
		t.align[c] = tw.AlignRight
	}
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// insert puts a column of numbers at index at.
func (t *table) insert(at int, head string, cells []string) {
	t.head = slices.Insert(t.head, at, head)
	t.align = slices.Insert(t.align, at, tw.AlignRight)
	for i := range t.rows {
		t.rows[i] = slices.Insert(t.rows[i], at, cells[i])
	}
}

func (t *table) write(w io.Writer) error {
	alignment := tw.CellAlignment{PerColumn: t.align}
	plain := tw.CellFormatting{AutoWrap: tw.WrapNone, AutoFormat: tw.Off}
	var text bytes.Buffer
	out := tablewriter.NewTable(&text,
		tablewriter.WithConfig(tablewriter.Config{
			Header: tw.CellConfig{Formatting: plain, Alignment: alignment},
			Row:    tw.CellConfig{Formatting: plain, Alignment: alignment},
		}),
		tablewriter.WithRendition(tw.Rendition{
			Borders:  tw.BorderNone,
			Symbols:  tw.NewSymbols(tw.StyleASCII),
			Settings: tw.Settings{Separators: tw.Separators{BetweenColumns: tw.Off}, Lines: tw.Lines{ShowHeaderLine: tw.On}},
		}),
	)
	out.Header(t.head)
	if err := out.Bulk(t.rows); err != nil {
		return err
	}
	if err := out.Render(); err != nil {
		return err
	}
	for line := range bytes.Lines(text.Bytes()) { // cells are padded to the right too
		if _, err := w.Write(append(bytes.TrimRight(line, " \n"), '\n')); err != nil {
			return err
		}
	}
	return nil
}
