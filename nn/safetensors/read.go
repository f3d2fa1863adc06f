package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"placer/internal/jsonx"
)

// Read parses a whole file. The tensors share b. A file that says its checksum, as Write has
// them do, must have it.
func Read(b []byte) (*File, error) {
	f, err := read(b)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return f, nil
}

func read(b []byte) (*File, error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("%d bytes are too few for a header length", len(b))
	}
	n := binary.LittleEndian.Uint64(b)
	switch {
	case n > maxHeader:
		return nil, fmt.Errorf("header length %d exceeds %d", n, maxHeader)
	case n > uint64(len(b)-8):
		return nil, fmt.Errorf("header length %d exceeds the %d bytes of the file", n, len(b))
	}
	head, data := b[8:8+n], b[8+n:]
	if len(head) == 0 || head[0] != '{' || !utf8.Valid(head) {
		return nil, errors.New("header is not a JSON object")
	}
	f := &File{}
	entries, err := parseHeader(head, f)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(entries, func(x, y named) int {
		if c := cmp.Compare(x.Offsets[0], y.Offsets[0]); c != 0 {
			return c
		}
		return cmp.Compare(x.Offsets[1], y.Offsets[1])
	})
	at := int64(0)
	for _, e := range entries {
		want, err := size(e.Type, e.Shape)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", e.name, err)
		}
		lo, hi := e.Offsets[0], e.Offsets[1]
		switch {
		case lo != at:
			return nil, fmt.Errorf("tensor %q starts at byte %d of the data, want %d", e.name, lo, at)
		case hi > int64(len(data)) || hi < lo:
			return nil, fmt.Errorf("tensor %q ends at byte %d of %d of the data", e.name, hi, len(data))
		case hi-lo != want:
			return nil, fmt.Errorf("tensor %q of %s %v has %d bytes, want %d", e.name, e.Type, e.Shape, hi-lo, want)
		}
		f.Tensors = append(f.Tensors, Tensor{e.name, e.Type, e.Shape, data[lo:hi:hi]})
		at = hi
	}
	if at != int64(len(data)) {
		return nil, fmt.Errorf("%d bytes follow the last tensor", int64(len(data))-at)
	}
	return f, f.checkSum()
}

// checkSum takes the checksum out of the metadata and reports one that is not that of f.
func (f *File) checkSum() error {
	want, told := f.Metadata[sumKey]
	if !told {
		return nil // of another program, or written before there were any
	}
	if delete(f.Metadata, sumKey); len(f.Metadata) == 0 {
		f.Metadata = nil
	}
	got, err := digest(f)
	if err == nil && got != want {
		err = errors.New("the file is damaged: its bytes are not those that were written (sha256)")
	}
	return err
}

type named struct {
	name string
	entry
}

// parseHeader reads the object key by key, since decoding into a map would let
// the later of two equal names win.
func parseHeader(head []byte, f *File) ([]named, error) {
	d := json.NewDecoder(bytes.NewReader(head))
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	var all []named
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("header: %w", err)
		}
		name, _ := key.(string)
		if seen[name] {
			return nil, fmt.Errorf("header: %q occurs twice", name)
		}
		seen[name] = true
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return nil, fmt.Errorf("header: %q: %w", name, err)
		}
		if name == metadataKey {
			if err := json.Unmarshal(raw, &f.Metadata); err != nil {
				return nil, fmt.Errorf("header: metadata: %w", err)
			}
			continue
		}
		e := named{name: name}
		if err := jsonx.Decode(raw, &e.entry); err != nil {
			return nil, fmt.Errorf("header: tensor %q: %w", name, err)
		}
		all = append(all, e)
	}
	if _, err := d.Token(); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("header: more than one JSON value")
	}
	return all, nil
}

// size returns the bytes of a tensor.
func size(t dtype, shape []int) (int64, error) {
	n := t.bytes()
	if n == 0 {
		return 0, fmt.Errorf("unknown type %q", t)
	}
	for _, s := range shape {
		if s < 0 {
			return 0, fmt.Errorf("shape %v", shape)
		}
		if s > 0 && n > math.MaxInt64/int64(s) {
			return 0, fmt.Errorf("shape %v is too large", shape)
		}
		n *= int64(s)
	}
	return n, nil
}
