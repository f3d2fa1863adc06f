package foreign

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
)

// MaxFile bounds the files that importers take in whole.
const MaxFile = 1 << 30

// ReadFile returns the bytes of the file at path, at most MaxFile.
func ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(data) > MaxFile {
		return nil, fmt.Errorf("%s: the file is longer than %d bytes", path, MaxFile)
	}
	return data, nil
}

// Decode reads the one JSON document of data into v. name is the file's name
// for errors, which say file, line, column and reason.
func Decode(data []byte, name string, v any) error {
	return decode(json.NewDecoder(bytes.NewReader(data)), data, name, v)
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
		line, column := Place(data, at)
		return fmt.Errorf("%s: line %d, column %d: %s", name, line, column, reason)
	}
	if rest := bytes.TrimSpace(data[d.InputOffset():]); len(rest) > 0 {
		line, column := Place(data, d.InputOffset())
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

// Place returns line and column, from 1, of the byte at offset.
func Place(data []byte, offset int64) (line, column int) {
	before := data[:min(max(offset, 0), int64(len(data)))]
	return 1 + bytes.Count(before, []byte("\n")), len(before) - bytes.LastIndexByte(before, '\n')
}

// Keys returns the keys of the object that data starts with, in order; nil where
// it starts with no object. It reads no further than it must to see want keys.
func Keys(data []byte, want int) []string {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var keys []string
	for d.More() && len(keys) < want {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return keys
		}
		keys = append(keys, key)
		var skip json.RawMessage
		if d.Decode(&skip) != nil {
			return keys
		}
	}
	return keys
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
