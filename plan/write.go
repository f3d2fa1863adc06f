package plan

import (
	"io"
	"strconv"

	"placer/internal/jsonx"
)

// perLine is the count of numbers in a line of a written array: short enough
// for a diff to show where two plans part.
const perLine = 32

// Write writes the plan file.
func (f *File) Write(w io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	var err error
	format := Format
	if !f.Changes.None() {
		format = ChangedFormat
	}
	b := []byte("{\"format\": \"" + format + "\"")
	str := func(key, s string) {
		if b = append(b, key...); err == nil {
			b, err = jsonx.AppendString(b, s)
		}
	}
	str(",\n\"graph\": {\"name\": ", f.GraphName)
	str(", \"hash\": ", f.GraphHash)
	str("},\n\"machine\": {\"name\": ", f.MachineName)
	str(", \"hash\": ", f.MachineHash)
	if f.Changes.None() {
		b = append(b, '}')
	} else {
		str("},\n\"changes\": {\"hash\": ", f.ChangedHash)
		b = appendLayers(b, "recompute", f.Changes.Recompute)
		b = appendLayers(b, "offload", f.Changes.Offload)
		b = append(b, '}')
	}
	str(",\n\"method\": ", f.Method)
	for i, d := range f.Devices {
		str([]string{",\n\"devices\": [", ", "}[min(i, 1)], d)
	}
	if err != nil {
		return err
	}
	b = append(b, "],\n\"device\": ["...)
	b = appendRows(b, f.Device)
	if f.Priority != nil {
		b = append(b, ",\n\"priority\": ["...)
		b = appendRows(b, f.Priority)
	}
	if f.Fusion != nil {
		b = append(b, ",\n\"fusion\": ["...)
		b = appendRows(b, f.Fusion)
	}
	for i, name := range f.Names {
		str([]string{",\n\"ops\": {\n", ",\n"}[min(i, 1)], name)
		str(": [", f.Devices[f.Device[i]])
		if f.Priority != nil {
			b = strconv.AppendInt(append(b, ", "...), int64(f.Priority[i]), 10)
		}
		b = append(b, ']')
	}
	if f.Names != nil {
		b = append(b, "\n}"...)
	}
	if err != nil {
		return err
	}
	b = append(b, "}\n"...)
	_, err = w.Write(b)
	return err
}

// appendLayers appends a key with layers, if there are any.
func appendLayers(b []byte, key string, layers []int32) []byte {
	if len(layers) == 0 {
		return b
	}
	b = append(b, ", \""+key+"\": ["...)
	for i, k := range layers {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(b, int64(k), 10)
	}
	return append(b, ']')
}

// appendRows appends the numbers, perLine a line, and the closing bracket.
func appendRows[T uint8 | int32](b []byte, xs []T) []byte {
	for i, x := range xs {
		switch {
		case i == 0:
			b = append(b, '\n')
		case i%perLine == 0:
			b = append(b, ",\n"...)
		default:
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(b, int64(x), 10)
	}
	return append(b, "\n]"...)
}
