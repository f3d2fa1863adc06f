package tfevents

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// Record is one number of a file.
type Record struct {
	Tag   string
	Step  int64
	Value float64
}

// ReadFolder returns the numbers of all files in dir, file by file in the order of their
// names, which is that of their times; none where there are no files.
func ReadFolder(dir string) (all []Record, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*"))
	if err != nil {
		return nil, fmt.Errorf("tfevents: %w", err)
	}
	slices.Sort(paths)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		records, err := Read(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, records...)
	}
	return all, nil
}

// Read returns the numbers of a file, in order. A last record that is cut short, which a
// kill leaves, is left out; a wrong checksum is an error.
func Read(data []byte) (all []Record, err error) {
	for at := 0; at+12 <= len(data); {
		n := binary.LittleEndian.Uint64(data[at:])
		if checksum(data[at:at+8]) != binary.LittleEndian.Uint32(data[at+8:]) {
			return nil, fmt.Errorf("tfevents: byte %d: the checksum of the length is wrong", at)
		}
		if n > uint64(len(data)) || at+12+int(n)+4 > len(data) {
			break
		}
		event := data[at+12 : at+12+int(n)]
		if checksum(event) != binary.LittleEndian.Uint32(data[at+12+int(n):]) {
			return nil, fmt.Errorf("tfevents: byte %d: the checksum of the record is wrong", at)
		}
		if all, err = appendEvent(all, event); err != nil {
			return nil, fmt.Errorf("tfevents: byte %d: %w", at, err)
		}
		at += 16 + int(n)
	}
	return all, nil
}

// appendEvent appends the numbers of an Event.
func appendEvent(all []Record, event []byte) ([]Record, error) {
	step := int64(0)
	first := len(all)
	err := eachField(event, func(n protowire.Number, x uint64, data []byte) error {
		switch n {
		case eventStep:
			step = int64(x)
		case eventSummary:
			return eachField(data, func(n protowire.Number, _ uint64, value []byte) error {
				if n != summaryValue {
					return nil
				}
				r, scalar := Record{}, false
				err := eachField(value, func(n protowire.Number, x uint64, text []byte) error {
					switch n {
					case valueTag:
						r.Tag = string(text)
					case valueScalar:
						r.Value, scalar = float64(math.Float32frombits(uint32(x))), true
					}
					return nil
				})
				if scalar {
					all = append(all, r)
				}
				return err
			})
		}
		return nil
	})
	for i := range all[first:] {
		all[first+i].Step = step
	}
	return all, err
}

// eachField calls f with each field of a message: its number, and its value or bytes.
func eachField(b []byte, f func(n protowire.Number, x uint64, data []byte) error) error {
	for len(b) > 0 {
		n, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return protowire.ParseError(size)
		}
		b = b[size:]
		var x uint64
		var data []byte
		switch kind {
		case protowire.VarintType:
			x, size = protowire.ConsumeVarint(b)
		case protowire.Fixed32Type:
			var v uint32
			v, size = protowire.ConsumeFixed32(b)
			x = uint64(v)
		case protowire.Fixed64Type:
			x, size = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			data, size = protowire.ConsumeBytes(b)
		default:
			size = protowire.ConsumeFieldValue(n, kind, b)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		if err := f(n, x, data); err != nil {
			return err
		}
		b = b[size:]
	}
	return nil
}
