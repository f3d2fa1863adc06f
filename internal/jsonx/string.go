package jsonx

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// String reads a string. What it returns does not alias the document.
func (r *Reader) String() (string, error) {
	if r.peek() != '"' {
		return "", r.want("a string")
	}
	start := r.at + 1
	for i := start; i < len(r.data); i++ {
		switch c := r.data[i]; {
		case c == '"':
			if !utf8.Valid(r.data[start:i]) {
				return "", r.Errorf("string is not UTF-8")
			}
			r.at = i + 1
			return string(r.data[start:i]), nil
		case c == '\\':
			return r.escaped(start, i)
		case c < ' ':
			return "", r.ErrorAt(i, "control character in a string")
		}
	}
	return "", r.ErrorAt(len(r.data), "the document ends in a string")
}

// escaped reads on from the first backslash, at i, of a string that starts at
// start.
func (r *Reader) escaped(start, i int) (string, error) {
	out := append([]byte(nil), r.data[start:i]...)
	for i < len(r.data) {
		c := r.data[i]
		switch {
		case c == '"':
			if !utf8.Valid(out) {
				return "", r.Errorf("string is not UTF-8")
			}
			r.at = i + 1
			return string(out), nil
		case c < ' ':
			return "", r.ErrorAt(i, "control character in a string")
		case c != '\\':
			out = append(out, c)
			i++
			continue
		}
		if i+1 >= len(r.data) {
			break
		}
		switch e := r.data[i+1]; e {
		case '"', '\\', '/':
			out = append(out, e)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			u, ok := r.hex(i)
			if !ok {
				return "", r.ErrorAt(i, "\\u wants four hexadecimal digits")
			}
			if utf16.IsSurrogate(u) {
				low, _ := r.hex(i + 6)
				if u = utf16.DecodeRune(u, low); u == utf8.RuneError {
					return "", r.ErrorAt(i, "half a surrogate pair in a string")
				}
				i += 6
			}
			out = utf8.AppendRune(out, u)
			i += 4
		default:
			return "", r.ErrorAt(i, "unknown escape %q in a string", r.data[i:i+2])
		}
		i += 2
	}
	return "", r.ErrorAt(len(r.data), "the document ends in a string")
}

// hex reads \uXXXX at i.
func (r *Reader) hex(i int) (rune, bool) {
	if i+6 > len(r.data) || r.data[i] != '\\' || r.data[i+1] != 'u' {
		return 0, false
	}
	u, err := strconv.ParseUint(string(r.data[i+2:i+6]), 16, 16)
	return rune(u), err == nil
}
