package report

import (
	"encoding/json"
	"io"
)

// WriteJSON writes a document of this package, indented, with a newline at its
// end.
func WriteJSON(w io.Writer, document any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(document)
}
