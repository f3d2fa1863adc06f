package foreign

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"placer/internal/fsx"
)

// MaxFile bounds the files that importers take in whole.
const MaxFile = 1 << 30

// ReadFile returns what the file at path holds, at most MaxFile bytes, expanded where gzip
// has compressed it.
func ReadFile(path string) ([]byte, error) {
	return fsx.ReadFile(path, MaxFile)
}

// Decode reads the one JSON document of data into v. name is the file's name
// for errors, which say file, line, column and reason.
func Decode(data []byte, name string, v any) error {
	return decode(json.NewDecoder(bytes.NewReader(data)), data, name, v)
}

// Import reads the one JSON document of data into an F and makes of it what from
// does. Errors of both begin with name, the file's.
func Import[F, T any](data []byte, name string, from func(*F) (T, error)) (x T, err error) {
	f := new(F)
	if err := Decode(data, name, f); err != nil {
		return x, err
	}
	if x, err = from(f); err != nil {
		return x, fmt.Errorf("%s: %w", name, err)
	}
	return x, nil
}

// DecodeStrict is Decode for documents of our own: a key that v has no field for is an
// error.
func DecodeStrict(data []byte, name string, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return decode(d, data, name, v)
}

// decode reads with d, which reads data.
func decode(d *json.Decoder, data []byte, name string, v any) error {
	if err := d.Decode(v); err != nil {
		at := d.InputOffset()
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		reason := strings.TrimPrefix(err.Error(), "json: ")
		switch {
		case errors.As(err, &syntax):
			at = syntax.Offset
		case errors.As(err, &kind):
			at = kind.Offset
			reason = fmt.Sprintf("%s: a JSON %s, want %s", kind.Field, kind.Value, wanted(kind.Type))
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			at, reason = int64(len(data)), "the document ends early"
		}
		line, column := place(data, at)
		return fmt.Errorf("%s: line %d, column %d: %s", name, line, column, reason)
	}
	if rest := bytes.TrimSpace(data[d.InputOffset():]); len(rest) > 0 {
		line, column := place(data, d.InputOffset())
		return fmt.Errorf("%s: line %d, column %d: data after the end of the document", name, line, column)
	}
	return nil
}

// wanted says in JSON's terms what a field of type t is read from.
func wanted(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "a string"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "an array"
	}
	return "an object"
}

// place returns line and column, from 1, of the byte at offset.
func place(data []byte, offset int64) (line, column int) {
	before := data[:min(max(offset, 0), int64(len(data)))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// HasKey reports whether data starts with a JSON object that has one of keys among
// its first ones, of which there are as many as first says.
func HasKey(data []byte, first int, keys ...string) bool {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return false
	}
	for range first {
		t, err := d.Token()
		if key, ok := t.(string); err != nil || !ok {
			return false
		} else if slices.Contains(keys, key) {
			return true
		}
		var skip json.RawMessage
		if d.Decode(&skip) != nil {
			return false
		}
	}
	return false
}

// Switch is a truth value that is written as true, false, 1 or 0.
type Switch bool

// UnmarshalJSON reads any of the spellings.
func (s *Switch) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "true", "1", "1.0":
		*s = true
	case "false", "0", "0.0":
		*s = false
	default:
		return fmt.Errorf("%.20s, want true, false, 1 or 0", b)
	}
	return nil
}
