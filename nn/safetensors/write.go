package safetensors

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// sumKey is the metadata key of the SHA-256 of a file: of the header without it, and of the
// data, both as Write orders them. Write adds it, Read takes it out.
const sumKey = "sha256"

// Write writes f with its tensors sorted by name. It reports tensors whose data
// do not fit their shape, and names that occur twice.
func Write(w io.Writer, f *File) error {
	if err := write(w, f); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}

func write(w io.Writer, f *File) error {
	ts := byName(f)
	sum, err := digest(f)
	if err != nil {
		return err
	}
	metadata := maps.Clone(f.Metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[sumKey] = sum
	head, err := header(ts, metadata)
	if err != nil {
		return err
	}
	head = append(head, bytes.Repeat([]byte{' '}, (8-len(head)%8)%8)...) // align the data
	if len(head) > maxHeader {
		return fmt.Errorf("header of %d bytes, at most %d are allowed", len(head), maxHeader)
	}
	if _, err := w.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(head)))); err != nil {
		return err
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	for _, t := range ts {
		if _, err := w.Write(t.Data); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
	}
	return nil
}

// digest returns the value of sumKey for f.
func digest(f *File) (string, error) {
	ts := byName(f)
	head, err := header(ts, f.Metadata)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	h.Write(head)
	for _, t := range ts {
		h.Write(t.Data)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// byName returns the tensors of f in the order in which they are written.
func byName(f *File) []Tensor {
	ts := slices.Clone(f.Tensors)
	slices.SortFunc(ts, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	return ts
}

// header returns the JSON that describes ts, whose data follow one another.
func header(ts []Tensor, metadata map[string]string) ([]byte, error) {
	of := map[string]any{} // encoding/json sorts the keys
	if len(metadata) > 0 {
		of[metadataKey] = metadata
	}
	var at int64
	for _, t := range ts {
		n, err := size(t.Type, t.Shape)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		if n != int64(len(t.Data)) {
			return nil, fmt.Errorf("tensor %q of %s %v has %d bytes, want %d", t.Name, t.Type, t.Shape, len(t.Data), n)
		}
		if _, twice := of[t.Name]; twice || t.Name == metadataKey {
			return nil, fmt.Errorf("tensor %q occurs twice or is reserved", t.Name)
		}
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		of[t.Name] = entry{t.Type, shape, [2]int64{at, at + n}}
		at += n
	}
	head, err := json.Marshal(of)
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return head, nil
}
