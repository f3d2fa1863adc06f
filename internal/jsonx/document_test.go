package jsonx

import (
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	for doc, want := range map[string]string{
		`{"seed": 3}`:     "",
		"":                "the document ends early",
		`{"seed": `:       "the document ends early",
		`{"sed": 3}`:      `unknown field "sed"`,
		`{"seed": "3"}`:   "cannot unmarshal string",
		`{"seed": 3} {}`:  "data after the end of the document",
		`{"seed": 3}}`:    "data after the end of the document",
		"{\"seed\": 3}\n": "",
	} {
		var v struct {
			Seed uint64 `json:"seed"`
		}
		switch err := Decode([]byte(doc), &v); {
		case want == "" && (err != nil || v.Seed != 3):
			t.Errorf("%s: %v, %v", doc, v, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: error %v, want %q", doc, err, want)
		}
	}
}

func TestWrite(t *testing.T) {
	var b strings.Builder
	if err := Write(&b, map[string]string{"a": "<b>"}); err != nil || b.String() != "{\n  \"a\": \"<b>\"\n}\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

func TestFormat(t *testing.T) {
	for data, want := range map[string]string{
		`{"format": "placer plan 1", "x": [`: "placer plan 1", `{"x": 1, "format": "placer plan 1"}`: "", `{"format": {"format": "y"}}`: "", `["format", "y"]`: "", `{"format"`: "", `{}`: "", "": "",
	} {
		if got := Format([]byte(data)); got != want {
			t.Errorf("%s: %q, want %q", data, got, want)
		}
	}
}
