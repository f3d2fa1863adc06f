package jsonx

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Decode reads the one document in data into v as encoding/json does, which knows more
// types than Unmarshal and no lines. Keys that v has no field for, and what follows the
// document, are errors.
func Decode(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	switch err := d.Decode(v); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the document ends early")
	case err != nil:
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("data after the end of the document")
	}
	return nil
}

// Format returns what the document in data says that its format is, in its first key, and ""
// where it says none: a file of another kind is told apart before its keys are.
func Format(data []byte) string {
	d := json.NewDecoder(bytes.NewReader(data))
	open, _ := d.Token()
	key, _ := d.Token()
	if open != json.Delim('{') || key != "format" {
		return ""
	}
	value, _ := d.Token()
	format, _ := value.(string)
	return format
}

// Write writes v as a document for people too: indented, without HTML escapes, with a
// line feed at its end.
func Write(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
