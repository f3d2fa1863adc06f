package web

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"placer/graph"
	"placer/internal/report"
)

// payload is what a timeline is drawn from. In the page it is one text: base64 (of
// URLs, without padding) of the gzip of
//
//	uint32 length of the header, the header (JSON), zeros up to a multiple of 8
//	times   [2S]float64  start and end of each span, seconds
//	sizes   [S]float64   ops of a span of ops, bytes of a transfer
//	memory  [2M]float64  from when on, how many bytes; device by device
//	items   [I]uint32    spans of each track, by start; track by track
//	ops     [S]uint32    the first op of the span, or the sender
//	kinds   [4S]uint8    group, phase and flags, device, device it is sent to
//	names   UTF-8        of all ops, each with a newline behind it
//
// all little-endian. Times are the simulator's own numbers, not rounded.
type payload struct {
	header header
	times  []float64
	sizes  []float64
	memory []float64
	items  []uint32
	ops    []uint32
	kinds  []uint8
	names  []byte
}

// header is the JSON of a payload.
type header struct {
	Title    string  `json:"title"`
	StepTime float64 `json:"step_time_s"`
	Bound    float64 `json:"lower_bound_s"`
	Spans    int     `json:"spans"`
	// Joined says that spans of a track with a pause of at most so many seconds between
	// them were made one, because there were too many; 0: none.
	Joined  float64        `json:"joined_s"`
	Tracks  []headerTrack  `json:"tracks"`
	Memory  []headerMemory `json:"memory"`
	Devices []string       `json:"devices"`
	Group   string         `json:"group"` // what a group is: layer, module or kind
	Groups  []string       `json:"groups"`
	Colours []int          `json:"colours"` // of the groups
	// Search and Simulation are the documents that the page's figures are from;
	// Simulation without its critical path, which the spans have.
	Search     *report.Search     `json:"search,omitempty"`
	Simulation *report.Simulation `json:"simulation"`
}

type headerTrack struct {
	Name   string `json:"name"`
	Device int    `json:"device"` // -1: a link
	Items  int    `json:"items"`
}

type headerMemory struct {
	Samples int   `json:"samples"`
	Limit   int64 `json:"limit_bytes"`
	Peak    int64 `json:"peak_bytes"`
}

// Flags of a span beside its phase, which are the lowest two bits.
const (
	spanTransfer = 1 << 2
	spanCritical = 1 << 3
)

// mostLinks bounds the tracks of links: the busiest are drawn.
const mostLinks = 48

// newPayload returns the payload of x.
func newPayload(x *Plan, by *groups, search *report.Search) *payload {
	short := *x.Simulation
	short.CriticalPath = nil
	p := &payload{header: header{
		Title: x.Title, StepTime: float64(x.Result.Makespan), Bound: x.Bound,
		Group: by.word, Groups: by.names, Search: search, Simulation: &short,
	}}
	for i := range by.names {
		p.header.Colours = append(p.header.Colours, by.colour(i))
	}
	for i := range x.Machine.Devices {
		p.header.Devices = append(p.header.Devices, x.Machine.Devices[i].Name)
	}
	p.spans(x, by)
	for d, samples := range x.Result.Trace.Memory {
		p.header.Memory = append(p.header.Memory, headerMemory{len(samples), int64(x.Machine.Devices[d].Memory), int64(x.Result.PeakBytes[d])})
		for _, s := range samples {
			p.memory = append(p.memory, float64(s.At), float64(s.Bytes))
		}
	}
	for i := range x.Graph.NumOps() {
		p.names = append(append(p.names, x.Graph.Op(graph.OpID(i)).Name...), '\n')
	}
	return p
}

// critical is what the critical path goes through.
type critical struct {
	ops       map[graph.OpID]bool
	transfers map[[3]int]bool // op, tensor, receiver
}

// spans lays out the tracks: devices first, then the busiest links.
func (p *payload) spans(x *Plan, by *groups) {
	t := x.Result.Trace
	on := critical{map[graph.OpID]bool{}, map[[3]int]bool{}}
	for _, s := range x.Result.CriticalPath {
		if s.Transfer {
			on.transfers[[3]int{int(s.Op), int(s.Tensor), s.Device}] = true
		} else {
			on.ops[s.Op] = true
		}
	}
	devices := make([][]uint32, x.Machine.NumDevices())
	add := func(start, end, size float64, op graph.OpID, flags uint8, from, to int) uint32 {
		p.times = append(p.times, start, end)
		p.sizes = append(p.sizes, size)
		p.ops = append(p.ops, uint32(op))
		p.kinds = append(p.kinds, uint8(by.of[op]), flags, uint8(from), uint8(to))
		return uint32(len(p.ops) - 1)
	}
	for _, s := range t.Ops {
		flags := uint8(x.Graph.Op(s.Op).Phase)
		if on.ops[s.Op] {
			flags |= spanCritical
		}
		devices[s.Device] = append(devices[s.Device], add(float64(s.Start), float64(s.End), float64(1+len(s.Fused)), s.Op, flags, s.Device, s.Device))
	}
	links := make([][]uint32, len(x.Machine.Links))
	for _, s := range t.Transfers {
		flags := uint8(x.Graph.Op(s.Op).Phase) | spanTransfer
		if on.transfers[[3]int{int(s.Op), int(s.Tensor), s.To}] {
			flags |= spanCritical
		}
		k := add(float64(s.Start), float64(s.End), float64(s.Bytes), s.Op, flags, s.From, s.To)
		for _, l := range x.Machine.Route(s.From, s.To) {
			links[l] = append(links[l], k)
		}
	}
	for d, items := range devices {
		p.track(x.Machine.Devices[d].Name, d, items)
	}
	for _, l := range busiest(x.Result.LinkBusy, links) {
		p.track(x.Machine.Links[l].Name, -1, links[l])
	}
	p.header.Spans = len(p.ops)
}

// text returns the payload as the page has it.
func (p *payload) text() (string, error) {
	head, err := json.Marshal(p.header)
	if err != nil {
		return "", fmt.Errorf("web: %w", err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	frame := binary.LittleEndian.AppendUint32(nil, uint32(len(head)))
	frame = append(frame, head...)
	for len(frame)%8 != 0 {
		frame = append(frame, 0)
	}
	for _, column := range [][]float64{p.times, p.sizes, p.memory} {
		for _, v := range column {
			frame = binary.LittleEndian.AppendUint64(frame, math.Float64bits(v))
		}
	}
	for _, column := range [][]uint32{p.items, p.ops} {
		for _, v := range column {
			frame = binary.LittleEndian.AppendUint32(frame, v)
		}
	}
	frame = append(append(frame, p.kinds...), p.names...)
	if _, err := z.Write(frame); err != nil {
		return "", fmt.Errorf("web: %w", err)
	}
	if err := z.Close(); err != nil {
		return "", fmt.Errorf("web: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(b.Bytes()), nil
}
