package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
)

// writeCSV writes rows, of which the first is the head: numbers in full, nothing
// for a number that is not there.
func writeCSV(w io.Writer, rows [][]any) error {
	out := csv.NewWriter(w)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, x := range row {
			switch x := x.(type) {
			case float64:
				cells[i] = strconv.FormatFloat(x, 'g', -1, 64)
			case *float64:
				if x != nil {
					cells[i] = strconv.FormatFloat(*x, 'g', -1, 64)
				}
			default:
				cells[i] = fmt.Sprint(x)
			}
		}
		_ = out.Write(cells) // the writer keeps the first error
	}
	out.Flush()
	return out.Error()
}
