package hw

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"placer/internal/jsonx"
)

// jsonValue is a parsed JSON value that knows where it stands. Keys keep their order,
// and a repeated key is an error.
type jsonValue struct {
	at      int    // offset of its first byte
	path    string // "devices[2].model"
	kind    byte   // one of: { [ s (string) n (number) l (literal)
	text    string // of s, n and l
	members []jsonMember
	list    []*jsonValue
}

type jsonMember struct {
	name string
	at   int
	*jsonValue
}

// maxJSONDepth is far above what a machine file nests; it bounds the recursion.
const maxJSONDepth = 16

// jsonFile parses one document and locates the errors about it. Once something has
// failed, what it reads is zero, and err keeps the first failure.
type jsonFile struct {
	r     *jsonx.Reader
	place string // what errors name behind line and column
	err   error
}

// parseJSON reads exactly one value out of data.
func parseJSON(data []byte) (*jsonFile, *jsonValue, error) {
	f := &jsonFile{r: jsonx.New(data)}
	f.r.Context = func() string { return f.place }
	v, err := f.value("", 0)
	if err == nil {
		f.place = ""
		err = f.r.End()
	}
	return f, v, err
}

func (f *jsonFile) errorAt(at int, path, format string, a ...any) error {
	f.place = path
	return f.r.ErrorAt(at, format, a...)
}

// fail keeps that v is not what it should be.
func (f *jsonFile) fail(v *jsonValue, format string, a ...any) {
	if f.err == nil {
		f.err = f.errorAt(v.at, v.path, format, a...)
	}
}

func (f *jsonFile) value(path string, depth int) (v *jsonValue, err error) {
	const syntax = "not valid JSON"
	if f.place = syntax; path != "" {
		f.place = path + ": " + syntax
	}
	v = &jsonValue{path: path, kind: 'l'}
	c, at := f.r.Peek()
	v.at = at
	switch c {
	case '{', '[':
		if depth == maxJSONDepth {
			return nil, f.errorAt(at, path, "nested deeper than %d", maxJSONDepth)
		}
		v.kind = c
		return v, f.children(v, depth)
	case '"':
		v.kind = 's'
		v.text, err = f.r.String()
	case 't', 'f':
		var x bool
		x, err = f.r.Bool()
		v.text = strconv.FormatBool(x)
	case 'n':
		v.text, err = "null", f.r.Null()
	default:
		v.kind = 'n'
		v.text, err = f.r.Number()
	}
	return v, err
}

// children reads the members or elements of v.
func (f *jsonFile) children(v *jsonValue, depth int) error {
	if v.kind == '[' {
		return f.r.Array(func(i int) error {
			c, err := f.value(fmt.Sprintf("%s[%d]", v.path, i), depth+1)
			v.list = append(v.list, c)
			return err
		})
	}
	return f.r.Members(func(at int, name string) error {
		path := strings.TrimPrefix(v.path+"."+name, ".")
		if v.member(name) != nil {
			return f.errorAt(at, path, "the key occurs twice")
		}
		c, err := f.value(path, depth+1)
		v.members = append(v.members, jsonMember{name, at, c})
		return err
	})
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

// truth reads true or false; a nil v is false.
func (f *jsonFile) truth(v *jsonValue) bool {
	if v == nil {
		return false
	}
	if v.kind != 'l' || v.text == "null" {
		f.fail(v, "is %s, want true or false", v.describe())
	}
	return v.text == "true"
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
	return v.text
}
