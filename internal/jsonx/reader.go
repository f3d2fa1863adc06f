package jsonx

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds the nesting that Object and Array enter.
const maxDepth = 64

// Reader reads one document from front to back. Its methods read the next value
// as the type they name. After an error it must not be used again.
type Reader struct {
	data  []byte
	at    int
	depth int
	// Context, if not nil, is asked for the place in the document's own terms
	// ("op 17 (conv1)") when an error is made; an empty answer is left out.
	Context func() string
}

// New returns a reader of data, which it keeps.
func New(data []byte) *Reader { return &Reader{data: data} }

// Errorf makes an error that names the line and column of the next value.
func (r *Reader) Errorf(format string, a ...any) error {
	r.space()
	return r.ErrorAt(r.at, format, a...)
}

// ErrorAt makes an error that names the line and column of offset at.
func (r *Reader) ErrorAt(at int, format string, a ...any) error {
	at = min(at, len(r.data))
	before := r.data[:at]
	place := fmt.Sprintf("line %d, column %d: ", 1+bytes.Count(before, []byte("\n")), at-bytes.LastIndexByte(before, '\n'))
	if r.Context != nil {
		if c := r.Context(); c != "" {
			place += c + ": "
		}
	}
	return fmt.Errorf("%s%w", place, fmt.Errorf(format, a...))
}

func (r *Reader) space() {
	for r.at < len(r.data) {
		switch r.data[r.at] {
		case ' ', '\t', '\r', '\n':
			r.at++
		default:
			return
		}
	}
}

// Peek returns the first byte of the next value, which tells its type, and its offset;
// 0 at the end of the document.
func (r *Reader) Peek() (first byte, at int) { return r.peek(), r.at }

// peek returns the first byte of the next token, 0 at the end.
func (r *Reader) peek() byte {
	r.space()
	if r.at >= len(r.data) {
		return 0
	}
	return r.data[r.at]
}

// End checks that nothing but white space follows.
func (r *Reader) End() error {
	if r.peek() != 0 || r.at < len(r.data) {
		return r.Errorf("data after the end of the document")
	}
	return nil
}

// want is the error of a value of another type.
func (r *Reader) want(what string) error {
	c := r.peek()
	if r.at >= len(r.data) {
		return r.Errorf("the document ends early, want %s", what)
	}
	got := "a number"
	switch {
	case c == '{':
		got = "an object"
	case c == '[':
		got = "an array"
	case c == '"':
		got = "a string"
	case c == 't' || c == 'f':
		got = "a truth value"
	case c == 'n':
		got = "null"
	case c != '-' && (c < '0' || c > '9'):
		got = strconv.QuoteRune(rune(c))
		if c >= utf8.RuneSelf {
			got = fmt.Sprintf("byte 0x%02x", c)
		}
	}
	return r.Errorf("%s, want %s", got, what)
}

func (r *Reader) enter(open byte, what string) error {
	if r.peek() != open {
		return r.want(what)
	}
	if r.depth++; r.depth > maxDepth {
		return r.Errorf("nested deeper than %d", maxDepth)
	}
	r.at++
	return nil
}

// next moves to the following member or element, or past the closing bracket.
func (r *Reader) next(first bool, closing byte) (more bool, err error) {
	c := r.peek()
	switch {
	case c == closing:
		r.at++
		r.depth--
		return false, nil
	case first:
		return true, nil
	case c == ',':
		r.at++
		if r.peek() == closing {
			return false, r.Errorf("a comma before %q", closing)
		}
		return true, nil
	}
	return false, r.want(fmt.Sprintf("',' or %q", closing))
}

// Object reads an object whose keys are all in keys; the first required of them
// must be there. It calls f with the index of each key as it occurs; f must read
// the value. There may be at most 64 keys.
func (r *Reader) Object(keys []string, required int, f func(key int) error) error {
	start := r.at
	var seen uint64
	err := r.Members(func(at int, name string) error {
		k := slices.Index(keys, name)
		if k < 0 {
			return r.ErrorAt(at, "unknown key %q, want one of %s", name, strings.Join(keys, ", "))
		}
		if seen&(1<<k) != 0 {
			return r.ErrorAt(at, "key %q occurs twice", name)
		}
		seen |= 1 << k
		return f(k)
	})
	if err != nil {
		return err
	}
	for k := range required {
		if seen&(1<<k) == 0 {
			r.at = start
			return r.Errorf("key %q is missing", keys[k])
		}
	}
	return nil
}

// Members reads an object and calls f for each member with its place and key; f
// must read the value.
func (r *Reader) Members(f func(at int, key string) error) error {
	if err := r.enter('{', "an object"); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := r.next(first, '}')
		if err != nil || !more {
			return err
		}
		r.space()
		at := r.at
		key, err := r.String()
		if err != nil {
			return err
		}
		if r.peek() != ':' {
			return r.want("':'")
		}
		r.at++
		if err := f(at, key); err != nil {
			return err
		}
	}
}

// Array reads an array and calls f before each element; f must read it.
func (r *Reader) Array(f func(i int) error) error {
	if err := r.enter('[', "an array"); err != nil {
		return err
	}
	for i := 0; ; i++ {
		more, err := r.next(i == 0, ']')
		if err != nil || !more {
			return err
		}
		if err := f(i); err != nil {
			return err
		}
	}
}

// Null reads null.
func (r *Reader) Null() error {
	if r.space(); !bytes.HasPrefix(r.data[r.at:], []byte("null")) {
		return r.want("null")
	}
	r.at += len("null")
	return nil
}

// Bool reads true or false.
func (r *Reader) Bool() (bool, error) {
	r.space()
	for _, b := range []bool{true, false} {
		if s := strconv.FormatBool(b); bytes.HasPrefix(r.data[r.at:], []byte(s)) {
			r.at += len(s)
			return b, nil
		}
	}
	return false, r.want("true or false")
}

// Number reads a number and returns it as it is written.
func (r *Reader) Number() (string, error) {
	text, _, err := r.number("a value")
	return string(text), err
}

// number returns the text of the next number, as JSON spells them.
func (r *Reader) number(what string) (text []byte, whole bool, err error) {
	if c := r.peek(); c != '-' && (c < '0' || c > '9') {
		return nil, false, r.want(what)
	}
	i, d := r.at, r.data
	digits := func() (n int) {
		for i < len(d) && d[i] >= '0' && d[i] <= '9' {
			i, n = i+1, n+1
		}
		return n
	}
	if d[i] == '-' {
		i++
	}
	zero := i < len(d) && d[i] == '0'
	n := digits()
	ok, whole := n > 0 && (!zero || n == 1), true
	if i < len(d) && d[i] == '.' {
		i, whole = i+1, false
		ok = digits() > 0 && ok
	}
	if i < len(d) && (d[i] == 'e' || d[i] == 'E') {
		i, whole = i+1, false
		if i < len(d) && (d[i] == '+' || d[i] == '-') {
			i++
		}
		ok = digits() > 0 && ok
	}
	if !ok {
		return nil, false, r.Errorf("%.40q is not a number", d[r.at:i])
	}
	text = d[r.at:i]
	r.at = i
	return text, whole, nil
}

// Int reads a whole number between low and high, inclusive.
func (r *Reader) Int(low, high int64) (int64, error) {
	r.space()
	at := r.at
	text, whole, err := r.number("a whole number")
	if err != nil {
		return 0, err
	}
	if !whole {
		return 0, r.ErrorAt(at, "%.40s, want a whole number", text)
	}
	x, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || x < low || x > high {
		return 0, r.ErrorAt(at, "%.40s is out of range, want %d to %d", text, low, high)
	}
	return x, nil
}

// Float reads a finite number.
func (r *Reader) Float() (float64, error) {
	r.space()
	at := r.at
	text, _, err := r.number("a number")
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseFloat(string(text), 64)
	if err != nil || math.IsInf(x, 0) {
		return 0, r.ErrorAt(at, "%.40s is out of range", text)
	}
	return x, nil
}
