package web

import (
	"maragu.dev/gomponents"

	"placer/internal/report"
)

// page is what a page says; [page.write] writes it.
type page struct {
	Title    string
	Verdict  []string // sentences below the title
	Facts    []fact
	Sections []section
	Footer   string
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
	SVG            gomponents.Node
}

// tableView is a table with a caption.
type tableView struct {
	Caption string
	report.Cells
	Mark int // row to stand out; -1: none
}
