package tfevents

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// FileName returns the name TensorBoard looks for: that of the process pid on
// host, started at unix seconds. A resumed run starts a file of its own, with a
// later time; TensorBoard reads them in turn.
func FileName(unix int64, host string, pid int) string {
	return fmt.Sprintf("events.out.tfevents.%010d.%s.%d.0", unix, host, pid)
}

// Writer writes events. Every Write passes one whole record to the underlying
// writer, so that a kill loses the last one at most; a file needs no buffer.
type Writer struct {
	to    io.Writer
	clock func() float64
	data  []byte // scratch
	frame []byte
}

// NewWriter begins a file on w. clock returns the wall time, in seconds since
// 1970, that events carry.
func NewWriter(w io.Writer, clock func() float64) (*Writer, error) {
	t := &Writer{to: w, clock: clock}
	return t, t.event(func(b []byte) []byte {
		b = protowire.AppendTag(b, eventVersion, protowire.BytesType)
		return protowire.AppendString(b, "brain.Event:2")
	})
}

// Write adds the values of a step.
func (t *Writer) Write(step int64, values ...Value) error {
	return t.event(func(b []byte) []byte {
		b = protowire.AppendTag(b, eventStep, protowire.VarintType)
		b = protowire.AppendVarint(b, uint64(step))
		var s []byte
		for _, v := range values {
			s = protowire.AppendTag(s, summaryValue, protowire.BytesType)
			s = protowire.AppendBytes(s, v.encoded)
		}
		b = protowire.AppendTag(b, eventSummary, protowire.BytesType)
		return protowire.AppendBytes(b, s)
	})
}

// Fields of Event and Summary.
const (
	eventWallTime = 1 // double
	eventStep     = 2 // int64
	eventVersion  = 3 // string
	eventSummary  = 5
	summaryValue  = 1
)

// event writes a record with the time and what fields adds.
func (t *Writer) event(fields func([]byte) []byte) error {
	b := protowire.AppendTag(t.data[:0], eventWallTime, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, math.Float64bits(t.clock()))
	t.data = fields(b)
	f := binary.LittleEndian.AppendUint64(t.frame[:0], uint64(len(t.data)))
	f = binary.LittleEndian.AppendUint32(f, checksum(f))
	f = append(f, t.data...)
	t.frame = binary.LittleEndian.AppendUint32(f, checksum(t.data))
	if _, err := t.to.Write(t.frame); err != nil {
		return fmt.Errorf("tfevents: %w", err)
	}
	return nil
}

// checksum is the masked CRC32-C of b.
func checksum(b []byte) uint32 {
	c := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return (c>>15 | c<<17) + 0xa282ead8
}
