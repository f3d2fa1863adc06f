package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

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

// lines writes each text on a line of its own.
func (p *page) lines(texts ...string) {
	for _, t := range texts {
		p.printf("%s\n", t)
	}
}

// notes writes each text as a paragraph of its own, behind mark.
func (p *page) notes(mark string, texts ...string) {
	for _, t := range texts {
		p.folded(mark, t)
	}
}

// folded writes text behind mark, as prose does where paragraphs are broken.
func (p *page) folded(mark, text string) {
	if p.long {
		p.printf("%s%s\n", mark, text)
		return
	}
	p.fill(mark, text)
}

// prosef is printf of a paragraph; the ends of lines that stand before and behind it stay.
func (p *page) prosef(format string, a ...any) {
	text := fmt.Sprintf(format, a...)
	before := len(text) - len(strings.TrimLeft(text, "\n"))
	paragraph := strings.TrimRight(text[before:], "\n")
	p.printf("%s", text[:before])
	p.prose(paragraph)
	p.printf("%s", strings.TrimPrefix(text[before+len(paragraph):], "\n"))
}

// prose writes text in lines of at most textWidth, those behind the first set in.
func (p *page) prose(text string) { p.fill("", text) }

// fill writes s behind mark in lines of at most textWidth columns, unless a word is longer,
// those behind the first two columns in.
func (p *page) fill(mark, s string) {
	line := mark
	for k, word := range strings.Fields(s) {
		switch {
		case k == 0:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > textWidth:
			p.printf("%s\n", line)
			line = "  " + word
		default:
			line += " " + word
		}
	}
	p.printf("%s\n", line)
}

// seconds is a number of a document with its unit.
func seconds(s float64) units.Seconds { return units.Seconds(s) }
