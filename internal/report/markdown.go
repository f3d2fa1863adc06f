package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/olekukonko/tablewriter/tw"
)

// writeMarkdown writes t as a Markdown table.
func (t *table) writeMarkdown(w io.Writer) error {
	rule := make([]string, len(t.head))
	for i, a := range t.align {
		if rule[i] = "---"; a == tw.AlignRight {
			rule[i] = "---:"
		}
	}
	for _, row := range append([][]string{t.head, rule}, t.rows...) {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = strings.ReplaceAll(c, "|", `\|`)
		}
		if _, err := fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")); err != nil {
			return err
		}
	}
	return nil
}
