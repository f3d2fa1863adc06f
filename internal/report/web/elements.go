package web

import (
	_ "embed"
	"fmt"
	"io"
	"slices"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

//go:embed assets/style.css
var styleText string

//go:embed assets/timeline.js
var scriptText string

// policy allows the page no address at all.
const policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"

// write writes the page as HTML. What it says is escaped; style sheet, program and
// charts are the package's own.
func (p *page) write(w io.Writer) error {
	timelines := slices.ContainsFunc(p.Sections, func(s section) bool { return len(s.Timelines) > 0 })
	return h.Doctype(h.HTML(h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(g.Attr("http-equiv", "Content-Security-Policy"), h.Content(policy)),
			h.Meta(h.Name("color-scheme"), h.Content("light dark")),
			h.Link(h.Rel("icon"), h.Href("data:,")),
			h.TitleEl(g.Text(p.Title)),
			h.StyleEl(g.Raw(styleText)),
		),
		h.Body(
			h.A(h.Class("skip"), h.Href("#main"), g.Text("Skip to the report")),
			p.header(),
			h.Main(h.ID("main"), lines(p.Sections, section.element)),
			h.Footer(h.P(g.Text(p.Footer))),
			g.If(timelines, h.Script(g.Raw(scriptText))),
		),
	)).Render(w)
}

// lines returns an element of each of all, with a line's end behind each.
func lines[T any](all []T, element func(T) g.Node) g.Group {
	return g.Map(all, func(x T) g.Node { return g.Group{element(x), g.Raw("\n")} })
}

// some returns n, or nothing where it would be of no items.
func some[T any](items []T, n func() g.Node) g.Node { return g.Iff(len(items) > 0, n) }

func (p *page) header() g.Node {
	return h.Header(
		h.H1(g.Text(p.Title)),
		lines(p.Verdict, func(s string) g.Node { return h.P(h.Class("verdict"), g.Text(s)) }),
		some(p.Facts, func() g.Node { return h.Dl(h.Class("facts"), g.Map(p.Facts, fact.element)) }),
		h.Nav(h.Aria("label", "Sections"), h.Ul(g.Map(p.Sections, func(s section) g.Node {
			return h.Li(h.A(h.Href("#"+s.ID), g.Text(s.Title)))
		}))),
	)
}

func (f fact) element() g.Node {
	return h.Div(h.Dt(g.Text(f.Name)), h.Dd(g.Text(f.Value), g.If(f.Note != "", g.Group{g.Text(" "), h.Small(g.Text(f.Note))})))
}

func (s section) element() g.Node {
	return h.Section(h.ID(s.ID), h.Aria("labelledby", s.ID+"-title"),
		h.H2(h.ID(s.ID+"-title"), g.Text(s.Title)),
		lines(s.Text, func(t string) g.Node { return h.P(g.Text(t)) }),
		some(s.Timelines, func() g.Node { return g.Group{tools(), lines(s.Timelines, timeline.element)} }),
		some(s.Figures, func() g.Node { return h.Div(h.Class("figures"), lines(s.Figures, figure.element)) }),
		some(s.Legend, func() g.Node {
			return h.Ul(h.Class("legend"), h.Aria("label", "Colours"), g.Map(s.Legend, func(w swatch) g.Node { return h.Li(w.element(), g.Text(w.Name)) }))
		}),
		lines(s.Heats, heat.element),
		lines(s.Tables, tableView.element),
		some(s.Notes, func() g.Node {
			return h.Ul(h.Class("notes"), lines(s.Notes, func(t string) g.Node { return h.Li(g.Text(t)) }))
		}),
	)
}

// tools are the buttons of all timelines of a section, and how keys do the same.
func tools() g.Node {
	button := func(do, text string) g.Node {
		return h.Button(h.Type("button"), h.Data("do", do), g.Text(text))
	}
	option := func(value, text string) g.Node { return h.Option(h.Value(value), g.Text(text)) }
	return g.Group{
		h.Div(h.Class("tools"), h.Role("toolbar"), h.Aria("label", "Timeline"),
			button("left", "◀ earlier"), button("right", "later ▶"),
			button("in", "+ zoom in"), button("out", "− zoom out"),
			button("whole", "whole step"),
			h.Label(g.Text("colour "), h.Select(g.Attr("data-colour"), option("group", "by layer"), option("phase", "by phase"), option("critical", "critical path"))),
		),
		h.P(h.Class("hint"), g.Text("Keys, with the timeline in focus: ← → pan, + − zoom, 0 whole step, ↑ ↓ choose a row, [ ] the op before and after, Enter zooms to it. Or drag, and turn the wheel with Ctrl.")),
		h.NoScript(h.P(g.Text("The timeline is drawn by a script; tables and charts below are there without it."))),
	}
}

func (t timeline) element() g.Node {
	label := t.Title
	if label == "" {
		label = "Timeline"
	}
	return g.Group{
		g.If(t.Title != "", h.H3(h.ID(t.ID+"-title"), g.Text(t.Title))),
		h.Div(h.Class("timeline"), h.ID(t.ID), h.Role("application"), h.Aria("roledescription", "timeline"), h.Aria("label", label), h.Aria("describedby", t.ID+"-said"), h.TabIndex("0"),
			h.Canvas(h.Aria("hidden", "true"))),
		h.P(h.Class("said"), h.ID(t.ID+"-said"), h.Role("status"), h.Aria("live", "polite"), g.Text("Reading the step…")),
		h.Script(h.Type("text/plain"), h.ID(t.ID+"-data"), g.Raw(t.Payload)), // base64
	}
}

func (s swatch) element() g.Node { return h.Span(h.Class("swatch " + s.Class)) }

func (f figure) element() g.Node {
	return h.Figure(g.If(f.Title != "", h.H3(g.Text(f.Title))), f.SVG, g.If(f.Caption != "", h.FigCaption(g.Text(f.Caption))))
}

// scrolled is a table that may be wider than the page.
func scrolled(class, caption string, head, rows g.Node) g.Node {
	return h.Div(h.Class("scroll"), h.Role("region"), h.TabIndex("0"), h.Aria("label", caption),
		h.Table(g.If(class != "", h.Class(class)), h.Caption(g.Text(caption)), g.Raw("\n"), h.THead(h.Tr(head)), g.Raw("\n"), h.TBody(rows)))
}

func column(name string) g.Node { return h.Th(h.Scope("col"), g.Text(name)) }

func (t heat) element() g.Node {
	head := g.Group{column(t.Word), g.Map(t.Devices, column), column("time")}
	return scrolled("heat", t.Caption, head, lines(t.Rows, func(r heatRow) g.Node {
		return h.Tr(
			h.Th(h.Scope("row"), swatch{Class: r.Class}.element(), g.Text(r.Name)),
			g.Map(r.Shares, func(c heatCell) g.Node { return h.Td(h.Style(fmt.Sprintf("--s:%d%%", c.Percent)), g.Text(c.Text)) }),
			h.Td(h.Class("number"), g.Text(r.Time)),
		)
	}))
}

func (t tableView) element() g.Node {
	number := func(k int) g.Node { return g.If(t.Number[k], h.Class("number")) }
	var head g.Group
	for k, name := range t.Head {
		head = append(head, h.Th(h.Scope("col"), number(k), g.Text(name)))
	}
	var rows g.Group
	for i, cells := range t.Rows {
		row := g.Group{g.If(i == t.Mark, h.Class("best"))}
		for k, text := range cells {
			if k == 0 && text != "" {
				row = append(row, h.Th(h.Scope("row"), g.Text(text)))
			} else {
				row = append(row, h.Td(number(k), g.Text(text)))
			}
		}
		rows = append(rows, h.Tr(row...), g.Raw("\n"))
	}
	return scrolled("", t.Caption, head, rows)
}
