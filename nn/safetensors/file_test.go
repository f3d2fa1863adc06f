package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func file() *File {
	return &File{
		Metadata: map[string]string{"step": "3", "a": "b"},
		Tensors: []Tensor{
			{"b", F32, []int{2, 1}, []byte{1, 2, 3, 4, 5, 6, 7, 8}},
			{"a", I64, []int{}, []byte{9, 0, 0, 0, 0, 0, 0, 0}},
			{"none", "U8", []int{0, 3}, []byte{}},
		},
	}
}

func written(t testing.TB, f *File) []byte {
	t.Helper()
	var w bytes.Buffer
	if err := Write(&w, f); err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

// TestRoundTrip also pins the bytes: 8-byte length, sorted header padded to a
// multiple of 8, data in the order of the names, the checksum in the metadata.
func TestRoundTrip(t *testing.T) {
	b := written(t, file())
	want := `{"__metadata__":{"a":"b","sha256":"9ab5dce28182f460ba59562004e8904a7f7c1d98ee70cf80221b8b458bf0f053","step":"3"},"a":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2,1],"data_offsets":[8,16]},"none":{"dtype":"U8","shape":[0,3],"data_offsets":[16,16]}}`
	n := binary.LittleEndian.Uint64(b)
	if got := strings.TrimRight(string(b[8:8+n]), " "); got != want {
		t.Errorf("header\n%s, want\n%s", got, want)
	}
	if n%8 != 0 || len(b) != int(8+n+16) {
		t.Errorf("header of %d bytes in a file of %d", n, len(b))
	}
	f, err := Read(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(written(t, f), b) {
		t.Error("writing what was read gives other bytes")
	}
	if x := f.Lookup("b"); x == nil || !reflect.DeepEqual(*x, file().Tensors[0]) {
		t.Errorf("tensor b is %v", x)
	}
	if f.Lookup("c") != nil {
		t.Error("tensor c exists")
	}
}

// TestDamage: no bit of a file but those of the checksum's name can change what is read; a file without a checksum, as versions before
// had them, is read, and a checksum is not part of what was written.
func TestDamage(t *testing.T) {
	whole := written(t, file())
	name := bytes.Index(whole, []byte(sumKey))
	for k := range 8 * len(whole) {
		if at := k/8 - name; at >= 0 && at < len(sumKey) {
			continue
		}
		b := bytes.Clone(whole)
		b[k/8] ^= 1 << (k % 8)
		if f, err := Read(b); err == nil && !bytes.Equal(written(t, f), whole) { // keys of the header in other letters are the same
			t.Fatalf("bit %d of byte %d: read as %v", k%8, k/8, f)
		}
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-9] ^= 1
	if _, err := Read(flipped); err == nil || !strings.Contains(err.Error(), "the file is damaged") {
		t.Errorf("a weight of another value: %v", err)
	}
	before := bytes.Replace(whole, []byte(`"sha256":`), []byte(`"other" :`), 1)
	f, err := Read(before)
	if err != nil || f.Metadata["other"] == "" {
		t.Errorf("without a checksum: %v, %v", f, err)
	}
	if f, err = Read(whole); err != nil || !reflect.DeepEqual(f.Metadata, file().Metadata) {
		t.Errorf("%v, %v", f, err)
	}
	if f, err = Read(written(t, &File{})); err != nil || f.Metadata != nil {
		t.Errorf("of nothing: %v, %v", f, err)
	}
}

// raw builds a file from a header.
func raw(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func TestReadRefuses(t *testing.T) {
	whole := written(t, file())
	entry := func(s string, data int) []byte { return raw(`{"a":`+s+`}`, data) }
	cases := []struct {
		name string
		b    []byte
		want string
	}{
		{"empty", nil, "too few"},
		{"length only", whole[:8], "exceeds"},
		{"huge header", binary.LittleEndian.AppendUint64(nil, 1<<40), "exceeds 100000000"},
		{"header past the end", binary.LittleEndian.AppendUint64(nil, 9), "exceeds the"},
		{"truncated data", whole[:len(whole)-1], "ends at byte"},
		{"trailing data", append(bytes.Clone(whole), 0), "follow the last tensor"},
		{"array", raw(`[]`, 0), "not a JSON object"},
		{"leading space", raw(` {}`, 0), "not a JSON object"},
		{"two values", raw(`{}{}`, 0), "more than one"},
		{"duplicate name", raw(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0), "occurs twice"},
		{"unknown key", entry(`{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}`, 1), "unknown field"},
		{"unknown type", entry(`{"dtype":"X8","shape":[1],"data_offsets":[0,1]}`, 1), "unknown type"},
		{"negative shape", entry(`{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}`, 1), "shape"},
		{"overflow", entry(`{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}`, 0), "too large"},
		{"wrong size", entry(`{"dtype":"F32","shape":[2],"data_offsets":[0,4]}`, 4), "want 8"},
		{"hole", entry(`{"dtype":"U8","shape":[1],"data_offsets":[1,2]}`, 2), "starts at byte 1"},
		{"backwards", entry(`{"dtype":"U8","shape":[1],"data_offsets":[0,-1]}`, 1), "ends at byte -1"},
		{"overlap", raw(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3), "starts at byte 1"},
		{"metadata of numbers", raw(`{"__metadata__":{"a":1}}`, 0), "metadata"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Read(c.b); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Read: %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestWriteRefuses(t *testing.T) {
	cases := []struct {
		name string
		ts   []Tensor
		want string
	}{
		{"short data", []Tensor{{"a", F32, []int{2}, make([]byte, 4)}}, "want 8"},
		{"twice", []Tensor{{"a", "U8", []int{0}, nil}, {"a", "U8", []int{0}, nil}}, "twice"},
		{"reserved", []Tensor{{metadataKey, "U8", []int{0}, nil}}, "reserved"},
		{"unknown type", []Tensor{{"a", "Q", []int{0}, nil}}, "unknown type"},
	}
	for _, c := range cases {
		if err := Write(&bytes.Buffer{}, &File{Tensors: c.ts}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
		}
	}
}

// FuzzRead: any input either is refused or can be written back and read again to
// the same content.
func FuzzRead(f *testing.F) {
	f.Add(written(f, file()))
	f.Add(bytes.Replace(written(f, file()), []byte("sha256"), []byte("sha255"), 1)) // which may change
	f.Add(raw(`{}`, 0))
	f.Add(raw(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := Read(b)
		if err != nil {
			return
		}
		again, err := Read(written(t, x))
		if err != nil {
			t.Fatalf("reading what was written: %v", err)
		}
		for i := range x.Tensors {
			y := again.Lookup(x.Tensors[i].Name)
			if y == nil || fmt.Sprint(*y) != fmt.Sprint(x.Tensors[i]) {
				t.Fatalf("tensor %v became %v", x.Tensors[i], y)
			}
		}
	})
}
