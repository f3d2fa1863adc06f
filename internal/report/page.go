package report

import (
	"fmt"
	"io"
	"strings"

	"placer/units"
)

// page writes text and tables to w. After an error of w it writes nothing more.
type page struct {
	w    io.Writer
	err  error
	draw func(*table, io.Writer) error
	long bool // paragraphs are one line each
}

func newPage(w io.Writer) *page { return &page{w: w, draw: (*table).write} }

func newMarkdown(w io.Writer) *page { return &page{w: w, draw: (*table).writeMarkdown, long: true} }

func (p *page) printf(format string, a ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, a...)
	}
}

func (p *page) table(t *table) {
	if p.err == nil {
		p.err = p.draw(t, p.w)
	}
}

// lines writes each text on a line of its own, behind mark.
func (p *page) lines(mark string, texts ...string) {
	for _, t := range texts {
		p.printf("%s%s\n", mark, t)
	}
}

// folded writes text behind mark, as prose does where paragraphs are broken.
func (p *page) folded(mark, text string) {
	if p.long {
		p.printf("%s%s\n", mark, text)
		return
	}
	p.prose(mark + text)
}

// prosef is printf of a paragraph; the ends of lines that stand behind it stay.
func (p *page) prosef(format string, a ...any) {
	text := fmt.Sprintf(format, a...)
	paragraph := strings.TrimRight(text, "\n")
	p.prose(paragraph)
	p.printf("%s", strings.TrimPrefix(text[len(paragraph):], "\n"))
}

// proseWidth is how many columns a paragraph takes at most, unless a word is longer.
const proseWidth = 100

// prose writes text in lines of at most proseWidth, those behind the first set in.
func (p *page) prose(text string) { p.fill("", text, proseWidth) }

// seconds is a number of a document with its unit.
func seconds(s float64) units.Seconds { return units.Seconds(s) }
