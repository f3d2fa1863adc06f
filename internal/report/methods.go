package report

import (
	"io"

	"placer/plan"
)

// MethodsFormat names the version of Methods as a JSON document.
const MethodsFormat = "placer methods 1"

// Methods lists the methods that can be compared.
type Methods struct {
	Format  string   `json:"format"`
	Methods []Method `json:"methods"`
}

// Method describes a method.
type Method struct {
	Name   string    `json:"name"`
	Kind   plan.Kind `json:"kind"`
	About  string    `json:"about"`
	Source string    `json:"source,omitempty"`
	Needs  string    `json:"needs,omitempty"` // what has to be installed
}

// WriteText writes m as a table: whole where w is wide, else in the columns of a terminal
// with what each method does in as many lines as it needs.
func (m *Methods) WriteText(w io.Writer) error {
	if _, ok := w.(wide); ok {
		t := newTable("method", "kind", "what it does", "source", "needs")
		for _, x := range m.Methods {
			t.row(x.Name, string(x.Kind), x.About, x.Source, x.Needs)
		}
		return t.write(w)
	}
	t := newTable("method", "kind")
	for _, x := range m.Methods {
		t.row(x.Name, string(x.Kind))
	}
	room := textWidth - t.width() - 2
	t = newTable("method", "kind", "what it does")
	for _, x := range m.Methods {
		name, kind := x.Name, string(x.Kind)
		for _, line := range wrapped(x.About, room) {
			t.row(name, kind, line)
			name, kind = "", ""
		}
	}
	return t.write(w)
}
