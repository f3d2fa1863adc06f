package jsonx

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// any reads a value of any type, as encoding/json does into an interface.
func (r *Reader) any() (v any, err error) {
	switch c := r.peek(); c {
	case '{':
		return nil, r.Object([]string{"a", "b"}, 0, func(int) error { _, err := r.any(); return err })
	case '[':
		return nil, r.Array(func(int) error { _, err := r.any(); return err })
	case '"':
		return r.String()
	case 't', 'f':
		return r.Bool()
	case 'n':
		return nil, r.Null()
	}
	return r.Float()
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ name, doc, want string }{
		{"empty", "", "line 1, column 1: the document ends early, want a number"},
		{"trailing", "{}\n {}", "line 2, column 2: data after the end of the document"},
		{"unknown key", "{\"a\": 1,\n\"c\": 2}", `line 2, column 1: unknown key "c", want one of a, b`},
		{"repeated key", `{"a": 1, "a": 2}`, `line 1, column 10: key "a" occurs twice`},
		{"comma before brace", `{"a": 1,}`, `a comma before '}'`},
		{"comma before bracket", `[1,]`, `a comma before ']'`},
		{"no comma", `[1 2]`, `a number, want ',' or ']'`},
		{"no colon", `{"a" 1}`, `want ':'`},
		{"cut in an object", `{"a": 1`, "the document ends early"},
		{"cut in a string", `"abc`, "the document ends in a string"},
		{"cut in an escape", `"abc\`, "the document ends in a string"},
		{"not UTF-8", "\"\xff\"", "string is not UTF-8"},
		{"control", "\"a\nb\"", "control character"},
		{"half a pair", `"\ud800x"`, "half a surrogate pair"},
		{"unknown escape", `"\x"`, "unknown escape"},
		{"bad hexadecimal", `"\u12g4"`, "four hexadecimal digits"},
		{"leading zero", "01", `"01" is not a number`},
		{"bare minus", "-", `"-" is not a number`},
		{"open fraction", "1.", `"1." is not a number`},
		{"too large", "1e999", "1e999 is out of range"},
		{"deep", strings.Repeat("[", 65), "nested deeper than 64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := New([]byte(c.doc))
			_, err := r.any()
			if err == nil {
				err = r.End()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestInt(t *testing.T) {
	for _, c := range []struct {
		doc  string
		want int64
		fail string
	}{
		{"0", 0, ""}, {" 12 ", 12, ""}, {"-3", -3, ""}, {"9223372036854775807", math.MaxInt64, ""},
		{"9223372036854775808", 0, "out of range"}, {"1.0", 0, "want a whole number"}, {"1e3", 0, "want a whole number"},
		{"-4", 0, "-4 is out of range, want -3 to"}, {`"1"`, 0, "a string, want a whole number"},
	} {
		got, err := New([]byte(c.doc)).Int(-3, math.MaxInt64)
		if (err == nil) != (c.fail == "") || err != nil && !strings.Contains(err.Error(), c.fail) || got != c.want {
			t.Errorf("Int of %s = %d, %v; want %d, %q", c.doc, got, err, c.want, c.fail)
		}
	}
}

func TestMissingKey(t *testing.T) {
	r := New([]byte("\n  {\"b\": 1}"))
	r.Context = func() string { return "op 3" }
	err := r.Object([]string{"a", "b"}, 1, func(int) error { _, err := r.Float(); return err })
	if want := `line 2, column 3: op 3: key "a" is missing`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// FuzzReader checks against encoding/json: what this package accepts, it
// accepts too, with the same strings; and strings survive AppendString.
func FuzzReader(f *testing.F) {
	for _, s := range []string{`{"a": [1, -2.5e3, "x\u00e9\ud83d\ude00\n"], "b": {"a": null}}`, `[true, false]`, `"\\\""`, "[1,]", "\"\xff\"", "nul", "-"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		r := New(doc)
		v, err := r.any()
		if err == nil {
			err = r.End()
		}
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("error of several lines: %q", err)
			}
			return
		}
		var want any
		if err := json.Unmarshal(doc, &want); err != nil {
			t.Fatalf("accepted %q, encoding/json says %v", doc, err)
		}
		s, ok := v.(string)
		if !ok {
			return
		}
		if s != want {
			t.Fatalf("string %q, want %q", s, want)
		}
		b, err := AppendString(nil, s)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := New(b).String(); err != nil || back != s {
			t.Fatalf("%q came back as %q, %v", s, back, err)
		}
	})
}
