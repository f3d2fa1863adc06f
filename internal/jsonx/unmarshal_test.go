package jsonx

import (
	"reflect"
	"strings"
	"testing"
)

type inner struct {
	Deep bool `json:"deep"`
}

type sample struct {
	Name  string           `json:"name,omitempty"`
	Seed  uint64           `json:"seed"`
	Share float64          `json:"share"`
	List  []string         `json:"list"`
	Dims  map[string]int64 `json:"dims"`
	Part  *inner           `json:"part"`
	inner
	Untold int
}

func TestUnmarshal(t *testing.T) {
	got := sample{Name: "kept", List: []string{"old"}}
	doc := `{"seed": 18446744073709551615, "share": 1.5, "list": ["a", "b"], "dims": {"n": 3}, "part": {"deep": true}, "deep": true}`
	if err := Unmarshal([]byte(doc), &got); err != nil {
		t.Fatal(err)
	}
	want := sample{Name: "kept", Seed: 18446744073709551615, Share: 1.5, List: []string{"a", "b"}, Dims: map[string]int64{"n": 3}, Part: &inner{true}, inner: inner{true}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for doc, want := range map[string]string{
		"{\n \"Untold\": 1}":     `line 2, column 2: unknown key "Untold", want one of name, seed, share, list, dims, part, deep`,
		`{"seed": -1}`:           "line 1, column 10: -1, want a whole number, 0 to",
		`{"seed": 1.5}`:          "1.5, want a whole number",
		`{"dims": {"n": "x"}}`:   "line 1, column 16: a string, want a whole number",
		`{"dims": {"n":1,"n":2}`: `key "n" occurs twice`,
		`{"list": {}}`:           "an object, want an array",
		`{"part": {"deep": 1}}`:  "a number, want true or false",
		`{} {}`:                  "data after the end",
		``:                       "the document ends early, want an object",
		`{"name": "x"`:           "the document ends early",
		`{"name": "x", "name":1`: `key "name" occurs twice`,
	} {
		var x sample
		if err := Unmarshal([]byte(doc), &x); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", doc, err, want)
		}
	}
}
