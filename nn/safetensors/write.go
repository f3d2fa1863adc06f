package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Write writes f with its tensors sorted by name. It reports tensors whose data
// do not fit their shape, and names that occur twice.
func Write(w io.Writer, f *File) error {
	ts := slices.Clone(f.Tensors)
	slices.SortFunc(ts, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	header := map[string]any{} // encoding/json sorts the keys
	if f.Metadata != nil {
		header[metadataKey] = f.Metadata
	}
	var at int64
	for _, t := range ts {
		n, err := size(t.Type, t.Shape)
		if err != nil {
			return fmt.Errorf("safetensors: tensor %q: %w", t.Name, err)
		}
		if n != int64(len(t.Data)) {
			return fmt.Errorf("safetensors: tensor %q of %s %v has %d bytes, want %d", t.Name, t.Type, t.Shape, len(t.Data), n)
		}
		if _, twice := header[t.Name]; twice || t.Name == metadataKey {
			return fmt.Errorf("safetensors: tensor %q occurs twice or is reserved", t.Name)
		}
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		header[t.Name] = entry{t.Type, shape, [2]int64{at, at + n}}
		at += n
	}
	head, err := json.Marshal(header)
	if err != nil {
		return fmt.Errorf("safetensors: header: %w", err)
	}
	head = append(head, bytes.Repeat([]byte{' '}, (8-len(head)%8)%8)...) // align the data
	if len(head) > maxHeader {
		return fmt.Errorf("safetensors: header of %d bytes, at most %d are allowed", len(head), maxHeader)
	}
	if _, err := w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(head)))); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	if _, err := w.Write(head); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	for _, t := range ts {
		if _, err := w.Write(t.Data); err != nil {
			return fmt.Errorf("safetensors: tensor %q: %w", t.Name, err)
		}
	}
	return nil
}
