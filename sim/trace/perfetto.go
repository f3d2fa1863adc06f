package trace

import (
	"bufio"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"placer/graph"
	"placer/hw"
	"placer/sim"
)

// Field numbers of Perfetto's trace format (protos/perfetto/trace). One trace is
// a sequence of packets; names are sent once and then referred to by number.
const (
	tracePacket = 1

	packetTimestamp  = 8
	packetSequence   = 10
	packetTrackEvent = 11
	packetInterned   = 12
	packetFlags      = 13
	packetTrack      = 60

	flagsCleared = 1 // the sequence starts with no names
	flagsNeeds   = 2 // the packet refers to names

	internedEventName = 2
	eventNameID       = 1
	eventNameText     = 2

	eventAnnotation = 4
	eventType       = 9
	eventName       = 10
	eventTrack      = 11
	eventCounter    = 30
	eventFlow       = 47

	annotationUint = 3
	annotationName = 10

	typeBegin   = 1
	typeEnd     = 2
	typeCounter = 4

	trackID      = 1
	trackName    = 2
	trackParent  = 5
	trackCounter = 8

	counterUnit      = 3
	counterUnitBytes = 3
)

const (
	rootTrack = 1 // tracks and counters follow
	sequence  = 1
)

// WritePerfetto writes t, a trace of g on m, as Perfetto's protobuf.
func WritePerfetto(w io.Writer, t *sim.Trace, g *graph.Graph, m *hw.Machine) error {
	p := &perfetto{w: bufio.NewWriter(w), names: map[string]uint64{}, flags: flagsCleared}
	tl := newTimeline(t, g, m)
	p.track(rootTrack, 0, g.Name()+" on "+m.Name, false)
	id := uint64(rootTrack)
	for _, tr := range tl.tracks {
		id++
		p.track(id, rootTrack, tr.name, false)
		for _, s := range tr.slices {
			p.begin(id, s)
			p.event(s.end, typeEnd, id, nil)
		}
	}
	for _, c := range tl.counters {
		id++
		p.track(id, rootTrack, c.name, true)
		for _, s := range c.samples {
			p.event(s.at, typeCounter, id, varint(nil, eventCounter, uint64(s.value)))
		}
	}
	return p.w.Flush()
}

// perfetto writes packets. Write errors stay in the buffered writer until Flush.
type perfetto struct {
	w     *bufio.Writer
	names map[string]uint64
	flags uint64
	interned,
	packet []byte // scratch
}

func varint(b []byte, field protowire.Number, x uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), x)
}

func message(b []byte, field protowire.Number, x []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), x)
}

func (p *perfetto) emit(body []byte) {
	body = varint(body, packetSequence, sequence)
	body = varint(body, packetFlags, p.flags)
	p.flags = flagsNeeds
	p.packet = message(p.packet[:0], tracePacket, body)
	p.w.Write(p.packet)
}

func (p *perfetto) track(id, parent uint64, name string, counter bool) {
	d := varint(nil, trackID, id)
	d = message(d, trackName, []byte(name))
	if parent != 0 {
		d = varint(d, trackParent, parent)
	}
	if counter {
		d = message(d, trackCounter, varint(nil, counterUnit, counterUnitBytes))
	}
	p.emit(message(nil, packetTrack, d))
}

func (p *perfetto) begin(track uint64, s slice) {
	id, known := p.names[s.name]
	if !known {
		id = uint64(len(p.names) + 1)
		p.names[s.name] = id
		n := varint(nil, eventNameID, id)
		n = message(n, eventNameText, []byte(s.name))
		p.interned = message(p.interned[:0], internedEventName, n)
	}
	extra := varint(nil, eventName, id)
	if s.bytes > 0 {
		a := varint(nil, annotationUint, uint64(s.bytes))
		extra = message(extra, eventAnnotation, message(a, annotationName, []byte("bytes")))
	}
	for _, f := range s.flows {
		extra = protowire.AppendFixed64(protowire.AppendTag(extra, eventFlow, protowire.Fixed64Type), f)
	}
	p.event(s.begin, typeBegin, track, extra)
}

// event writes an event with the fields extra and any names not sent yet.
func (p *perfetto) event(at int64, kind, track uint64, extra []byte) {
	e := varint(nil, eventType, kind)
	e = varint(e, eventTrack, track)
	e = append(e, extra...)
	body := varint(nil, packetTimestamp, uint64(at))
	if len(p.interned) > 0 {
		body = message(body, packetInterned, p.interned)
		p.interned = p.interned[:0]
	}
	p.emit(message(body, packetTrackEvent, e))
}
