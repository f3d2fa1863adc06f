package hw

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// jsonValue is a parsed JSON value that knows where it stands, which
// encoding/json alone does not keep. Keys keep their order, and a repeated key
// is an error instead of the last one winning.
type jsonValue struct {
	at      int64  // offset of its first byte
	path    string // "devices[2].model"
	kind    byte   // one of: { [ s (string) n (number) l (literal)
	text    string // of s, n and l
	members []jsonMember
	list    []*jsonValue
}

type jsonMember struct {
	name string
	at   int64
	*jsonValue
}

// maxJSONDepth is far above what a machine file nests; it bounds the recursion.
const maxJSONDepth = 16

// jsonFile parses one document and locates the errors about it. Once something has
// failed, what it reads is zero, and err keeps the first failure.
type jsonFile struct {
	data []byte
	dec  *json.Decoder
	err  error
}

// parseJSON reads exactly one value out of data.
func parseJSON(data []byte) (*jsonFile, *jsonValue, error) {
	f := &jsonFile{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	f.dec.UseNumber()
	v, err := f.value("", 0)
	if err != nil {
		return nil, nil, err
	}
	if _, at, err := f.token(""); !errors.Is(err, io.EOF) {
		return nil, nil, f.errorAt(at, "", "data after the end of the document")
	}
	return f, v, nil
}

// errorAt is the one place that words a location.
func (f *jsonFile) errorAt(at int64, path, format string, a ...any) error {
	at = min(max(at, 0), int64(len(f.data)))
	before := f.data[:at]
	line := 1 + bytes.Count(before, []byte("\n"))
	col := 1 + len(before) - (bytes.LastIndexByte(before, '\n') + 1)
	place := fmt.Sprintf("line %d, column %d: ", line, col)
	if path != "" {
		place += path + ": "
	}
	return fmt.Errorf("%s%w", place, fmt.Errorf(format, a...))
}

// fail keeps that v is not what it should be.
func (f *jsonFile) fail(v *jsonValue, format string, a ...any) {
	if f.err == nil {
		f.err = f.errorAt(v.at, v.path, format, a...)
	}
}

// token returns the next token and the offset of its first byte. At the end of
// the data err is io.EOF, as it is; other errors are located.
func (f *jsonFile) token(path string) (json.Token, int64, error) {
	at := f.dec.InputOffset()
	for at < int64(len(f.data)) && strings.IndexByte(" \t\r\n,:", f.data[at]) >= 0 {
		at++
	}
	t, err := f.dec.Token()
	var syntax *json.SyntaxError
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return t, at, err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, at, f.errorAt(int64(len(f.data)), path, "the document ends early")
	case errors.As(err, &syntax):
		// The decoder's own offset points behind the offending byte.
		return nil, at, f.errorAt(at, path, "not valid JSON: %w", err)
	}
	return nil, at, f.errorAt(at, path, "%w", err)
}

func (f *jsonFile) value(path string, depth int) (*jsonValue, error) {
	t, at, err := f.token(path)
	if errors.Is(err, io.EOF) {
		return nil, f.errorAt(int64(len(f.data)), path, "the document ends early")
	}
	if err != nil {
		return nil, err
	}
	v := &jsonValue{at: at, path: path}
	switch t := t.(type) {
	case string:
		v.kind, v.text = 's', t
	case json.Number:
		v.kind, v.text = 'n', t.String()
	case json.Delim:
		if depth == maxJSONDepth {
			return nil, f.errorAt(at, path, "nested deeper than %d", maxJSONDepth)
		}
		v.kind = byte(t)
		return v, f.children(v, depth)
	default: // true, false, null
		v.kind, v.text = 'l', fmt.Sprint(t)
	}
	return v, nil
}

// children reads the members or elements of v up to its closing bracket.
func (f *jsonFile) children(v *jsonValue, depth int) error {
	for f.dec.More() {
		if v.kind == '[' {
			c, err := f.value(fmt.Sprintf("%s[%d]", v.path, len(v.list)), depth+1)
			if err != nil {
				return err
			}
			v.list = append(v.list, c)
			continue
		}
		t, at, err := f.token(v.path)
		if errors.Is(err, io.EOF) {
			return f.errorAt(int64(len(f.data)), v.path, "the document ends early")
		}
		if err != nil {
			return err
		}
		name := t.(string) // the decoder refuses any other key
		path := strings.TrimPrefix(v.path+"."+name, ".")
		if v.member(name) != nil {
			return f.errorAt(at, path, "the key occurs twice")
		}
		c, err := f.value(path, depth+1)
		if err != nil {
			return err
		}
		v.members = append(v.members, jsonMember{name, at, c})
	}
	_, _, err := f.token(v.path)
	if errors.Is(err, io.EOF) {
		return f.errorAt(int64(len(f.data)), v.path, "the document ends early")
	}
	return err
}

// member returns the value of key name, nil where v has none.
func (v *jsonValue) member(name string) *jsonValue {
	for i := range v.members {
		if v.members[i].name == name {
			return v.members[i].jsonValue
		}
	}
	return nil
}

// object reports whether v is an object whose keys are all known and which has
// every required key. known lists the optional ones.
func (f *jsonFile) object(v *jsonValue, required, known []string) bool {
	if f.err != nil {
		return false
	}
	if v.kind != '{' {
		f.fail(v, "is %s, want an object", v.describe())
	}
	for _, m := range v.members {
		if !slices.Contains(required, m.name) && !slices.Contains(known, m.name) {
			f.fail(&jsonValue{at: m.at, path: v.path}, "unknown key %q, want one of %s", m.name, strings.Join(append(slices.Clone(required), known...), ", "))
		}
	}
	for _, name := range required {
		if v.member(name) == nil {
			f.fail(v, "key %q is missing", name)
		}
	}
	return f.err == nil
}

// elements returns those of the array v; a nil v has none.
func (f *jsonFile) elements(v *jsonValue) []*jsonValue {
	if v != nil && v.kind != '[' {
		f.fail(v, "is %s, want an array", v.describe())
	}
	if v == nil || f.err != nil {
		return nil
	}
	return v.list
}

// text returns the string v; a nil v is the empty string.
func (f *jsonFile) text(v *jsonValue) string {
	if v == nil {
		return ""
	}
	if v.kind != 's' {
		f.fail(v, "is %s, want a string", v.describe())
	}
	return v.text
}

// integer returns the whole number v.
func (f *jsonFile) integer(v *jsonValue) int {
	if v.kind == 'n' {
		if n, err := strconv.Atoi(v.text); err == nil {
			return n
		}
	}
	f.fail(v, "is %s, want a whole number", v.describe())
	return 0
}

// quantity reads the string v with parse; a nil v is zero.
func quantity[Q any](f *jsonFile, v *jsonValue, parse func(string) (Q, error)) (q Q) {
	if v == nil {
		return q
	}
	if v.kind != 's' {
		f.fail(v, "is %s, want a string with a number and its unit", v.describe())
		return q
	}
	q, err := parse(v.text)
	if err != nil {
		f.fail(v, "%w", err)
	}
	return q
}

func (v *jsonValue) describe() string {
	switch v.kind {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 's':
		return fmt.Sprintf("the string %q", v.text)
	case 'n':
		return "the number " + v.text
	}
	return strings.Replace(v.text, "<nil>", "null", 1)
}
