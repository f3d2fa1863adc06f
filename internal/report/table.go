package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"
)

// table collects rows for tablewriter in the one look that all our tables have.
type table struct {
	head  []string
	align []tw.Align
	rows  [][]string
}

// newTable returns a table of these columns. A head that begins with > is that of
// a column of numbers, which stand to the right.
func newTable(head ...string) *table {
	t := &table{}
	for _, h := range head {
		t.column(h)
	}
	return t
}

// column adds a column to a table without rows.
func (t *table) column(head string) {
	name, number := strings.CutPrefix(head, ">")
	t.head, t.align = append(t.head, name), append(t.align, tw.AlignLeft)
	if number {
		t.align[len(t.align)-1] = tw.AlignRight
	}
}

// row adds a row. A cell is printed as %v prints it.
func (t *table) row(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.rows = append(t.rows, row)
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
