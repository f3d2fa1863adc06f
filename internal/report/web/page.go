package web

import (
	_ "embed"
	"html/template"
	"io"
	"sync"

	"placer/internal/report"
)

//go:embed assets/page.html
var pageText string

//go:embed assets/style.css
var styleText string

//go:embed assets/timeline.js
var scriptText string

// page is what the template takes.
type page struct {
	Title    string
	Verdict  []string // sentences below the title
	Facts    []fact
	Sections []section
	Footer   string
	Style    template.CSS
	Script   template.JS // empty: the page has no timeline
}

// fact is a figure at the head of a page.
type fact struct{ Name, Value, Note string }

// section is a part of a page.
type section struct {
	ID, Title string
	Text      []string
	Timelines []timeline
	Legend    []swatch // of the timelines
	Figures   []figure
	Tables    []tableView
	Heats     []heat
	Notes     []string
}

// timeline is a canvas and the data that is drawn on it.
type timeline struct {
	ID, Title string
	Payload   string // payload.text
}

// swatch is a colour of a legend; Class is that of the style sheet.
type swatch struct{ Class, Name string }

// figure is a chart.
type figure struct {
	Title, Caption string
	SVG            template.HTML
}

// tableView is a table with a caption.
type tableView struct {
	Caption string
	report.Cells
	Mark int // row to stand out; -1: none
}

// IsNumber reports whether column k holds numbers.
func (t tableView) IsNumber(k int) bool { return t.Number[k] }

var parsed = sync.OnceValues(func() (*template.Template, error) {
	return template.New("page").Parse(pageText)
})

// write writes the page.
func (p *page) write(w io.Writer) error {
	t, err := parsed()
	if err != nil {
		return err
	}
	p.Style = template.CSS(styleText)
	for _, s := range p.Sections {
		if len(s.Timelines) > 0 {
			p.Script = template.JS(scriptText)
		}
	}
	return t.Execute(w, p)
}
