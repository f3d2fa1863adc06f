package trace

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"placer/graph"
	"placer/hw"
	"placer/sim"
)

// WriteChrome writes t, a trace of g on m, as Chrome's trace JSON. Its times are
// in microseconds.
func WriteChrome(w io.Writer, t *sim.Trace, g *graph.Graph, m *hw.Machine) error {
	c := &chrome{w: bufio.NewWriter(w)}
	tl := newTimeline(t, g, m)
	c.w.WriteString(`{"displayTimeUnit":"ns","traceEvents":[`)
	c.event(`"ph":"M","pid":1,"name":"process_name","args":{"name":%s}`, quote(g.Name()+" on "+m.Name))
	for k, tr := range tl.tracks {
		c.event(`"ph":"M","pid":1,"tid":%d,"name":"thread_name","args":{"name":%s}`, k+1, quote(tr.name))
		c.event(`"ph":"M","pid":1,"tid":%d,"name":"thread_sort_index","args":{"sort_index":%d}`, k+1, k+1)
		for _, s := range tr.slices {
			c.slice(k+1, s)
		}
	}
	c.arrows(tl)
	for _, x := range tl.counters {
		name := quote(x.name)
		for _, s := range x.samples {
			c.event(`"ph":"C","pid":1,"name":%s,"ts":%s,"args":{"bytes":%d}`, name, micro(s.at), s.value)
		}
	}
	c.w.WriteString("\n]}\n")
	return c.w.Flush()
}

// chrome writes events. Write errors stay in the buffered writer until Flush.
type chrome struct {
	w    *bufio.Writer
	some bool
}

func (c *chrome) event(format string, args ...any) {
	if c.some {
		c.w.WriteByte(',')
	}
	c.some = true
	c.w.WriteString("\n{")
	fmt.Fprintf(c.w, format, args...)
	c.w.WriteByte('}')
}

func (c *chrome) slice(tid int, s slice) {
	args := ""
	if s.bytes > 0 {
		args = fmt.Sprintf(`,"args":{"bytes":%d}`, s.bytes)
	}
	c.event(`"ph":"X","pid":1,"tid":%d,"name":%s,"ts":%s,"dur":%s%s`, tid, quote(s.name), micro(s.begin), micro(s.end-s.begin), args)
}

// arrows writes each flow as a start, steps and an end, in order of time.
func (c *chrome) arrows(tl *timeline) {
	type point struct {
		flow uint64
		at   int64
		tid  int
	}
	var points []point
	for k, tr := range tl.tracks {
		for _, s := range tr.slices {
			for _, f := range s.flows {
				points = append(points, point{f, s.begin, k + 1})
			}
		}
	}
	slices.SortFunc(points, func(a, b point) int { return cmp.Or(cmp.Compare(a.flow, b.flow), cmp.Compare(a.at, b.at)) })
	for k, p := range points {
		phase := `"ph":"t"`
		switch {
		case k == 0 || points[k-1].flow != p.flow:
			phase = `"ph":"s"`
		case k+1 == len(points) || points[k+1].flow != p.flow:
			phase = `"ph":"f","bp":"e"`
		}
		c.event(`%s,"pid":1,"tid":%d,"name":"tensor","cat":"tensor","id":%d,"ts":%s`, phase, p.tid, p.flow, micro(p.at))
	}
}

// quote returns s as a JSON string; bytes that are no UTF-8 are replaced.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("trace: a string cannot be JSON: " + err.Error())
	}
	return string(b)
}

// micro prints nanoseconds as microseconds, without rounding.
func micro(ns int64) string { return fmt.Sprintf("%d.%03d", ns/1000, ns%1000) }
