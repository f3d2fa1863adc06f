package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/tw"
)

// table collects rows for tablewriter in the one look that all our tables have.
type table struct {
	head  []string
	align []tw.Align
	rows  [][]string
	// narrow says that the table is to fit a terminal; drop lists the columns that are
	// left out of it where that is needed, the first one first.
	narrow bool
	drop   []string
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

// fitting makes the table fit a terminal: columns are left out, in the order of drop,
// and then the longest names are shortened in the middle, the wider column first.
func (t *table) fitting(drop ...string) *table {
	t.narrow, t.drop = true, drop
	return t
}

// textWidth is how many columns of text a table takes where it can: those of a terminal.
const textWidth = 80

// shortest is the least that names are shortened to.
const shortest = 12

// fit returns the table that is printed in limit columns, 0 for any number.
func (t *table) fit(limit int) *table {
	if !t.narrow || limit <= 0 {
		return t
	}
	n := &table{head: slices.Clone(t.head), align: slices.Clone(t.align)}
	for _, r := range t.rows {
		n.rows = append(n.rows, slices.Clone(r))
	}
	for _, name := range t.drop {
		if n.width() <= limit {
			break
		}
		if k := slices.Index(n.head, name); k >= 0 {
			n.head, n.align = slices.Delete(n.head, k, k+1), slices.Delete(n.align, k, k+1)
			for i, r := range n.rows {
				n.rows[i] = slices.Delete(r, k, k+1)
			}
		}
	}
	for over := n.width() - limit; over > 0; over = n.width() - limit {
		widest, next := n.widest()
		if widest < 0 {
			break
		}
		// Down to the next column at most: a long name in one column must not cost the
		// other one its words.
		to := max(n.least(widest), n.columnWidth(widest)-over, next-1)
		for _, r := range n.rows {
			r[widest] = shorten(r[widest], to)
		}
	}
	return n
}

// widest returns the column of names that is the widest of those that can be shortened, -1
// where none can, and the width of the next one, 0 where there is none.
func (t *table) widest() (widest, next int) {
	widest = -1
	for k := range t.head {
		if t.align[k] != tw.AlignLeft || t.columnWidth(k) <= t.least(k) {
			continue
		}
		switch w := t.columnWidth(k); {
		case widest < 0:
			widest = k
		case w > t.columnWidth(widest):
			widest, next = k, t.columnWidth(widest)
		default:
			next = max(next, w)
		}
	}
	return widest, next
}

// least returns what column k is shortened to at most.
func (t *table) least(k int) int { return max(shortest, utf8.RuneCountInString(t.head[k])) }

// width returns the columns of text that the table takes.
func (t *table) width() int {
	w := 0
	for k := range t.head {
		w += t.columnWidth(k) + 2
	}
	return w
}

func (t *table) columnWidth(k int) int {
	w := utf8.RuneCountInString(t.head[k])
	for _, r := range t.rows {
		w = max(w, utf8.RuneCountInString(r[k]))
	}
	return w
}

// shorten returns s in n characters, its middle left out.
func shorten(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	head := (n - 2) / 2
	return string(r[:head]) + ".." + string(r[len(r)-(n-2-head):])
}

// wide is a writer to which tables are written with all their columns.
type wide struct{ io.Writer }

// Wide returns a writer to which tables are written whole, however wide.
func Wide(w io.Writer) io.Writer { return wide{w} }

// write writes t, in the columns of a terminal unless w is wide.
func (t *table) write(w io.Writer) error {
	if _, ok := w.(wide); !ok {
		t = t.fit(textWidth)
	}
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
