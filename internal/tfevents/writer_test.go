package tfevents

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"os"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// event is what a reader finds in a record.
type event struct {
	time, scalar float64
	step         uint64
	version      string
	tags         []string
	histogram    map[protowire.Number][]float64
}

// decode reads a file record by record, each checksum first.
func decode(t *testing.T, b []byte) (all []event) {
	t.Helper()
	table := crc32.MakeTable(crc32.Castagnoli)
	right := func(data, sum []byte) {
		c := binary.LittleEndian.Uint32(sum) - 0xa282ead8
		if c = c>>17 | c<<15; c != crc32.Checksum(data, table) {
			t.Fatalf("record %d: checksum %#x of %d bytes is wrong", len(all), c, len(data))
		}
	}
	for len(b) > 0 {
		n := int(binary.LittleEndian.Uint64(b))
		right(b[:8], b[8:12])
		right(b[12:12+n], b[12+n:16+n])
		all = append(all, parse(t, b[12:12+n]))
		b = b[16+n:]
	}
	return all
}

// parse reads an Event. Fields of the messages inside are told apart by depth.
func parse(t *testing.T, b []byte) (e event) {
	e.histogram = map[protowire.Number][]float64{}
	fields(t, b, func(n protowire.Number, x uint64, data []byte) {
		switch n {
		case 1:
			e.time = math.Float64frombits(x)
		case 2:
			e.step = x
		case 3:
			e.version = string(data)
		case 5:
			fields(t, data, func(_ protowire.Number, _ uint64, value []byte) {
				fields(t, value, func(n protowire.Number, x uint64, data []byte) {
					switch n {
					case 1:
						e.tags = append(e.tags, string(data))
					case 2:
						e.scalar = float64(math.Float32frombits(uint32(x)))
					case 5:
						fields(t, data, func(n protowire.Number, x uint64, packed []byte) {
							if packed == nil {
								e.histogram[n] = []float64{math.Float64frombits(x)}
							}
							for ; len(packed) > 0; packed = packed[8:] {
								e.histogram[n] = append(e.histogram[n], math.Float64frombits(binary.LittleEndian.Uint64(packed)))
							}
						})
					}
				})
			})
		}
	})
	return e
}

func fields(t *testing.T, b []byte, f func(n protowire.Number, x uint64, data []byte)) {
	t.Helper()
	for len(b) > 0 {
		n, kind, k := protowire.ConsumeTag(b)
		b = b[max(k, 0):]
		var x uint64
		var data []byte
		switch kind {
		case protowire.VarintType:
			x, k = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			x, k = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			var y uint32
			y, k = protowire.ConsumeFixed32(b)
			x = uint64(y)
		default:
			data, k = protowire.ConsumeBytes(b)
		}
		if k < 0 {
			t.Fatalf("field %d: %v", n, protowire.ParseError(k))
		}
		f(n, x, data)
		b = b[k:]
	}
}

// ticking returns a clock that gains a quarter of a second per reading.
func ticking() func() float64 {
	now := 1.5e9 - 0.25
	return func() float64 { now += 0.25; return now }
}

func numbers(step int) (xs []float64) {
	for i := range 50 {
		xs = append(xs, math.Sin(float64(i+step))*math.Pow(10, float64(i%7-3)))
	}
	return append(xs, 0)
}

// TestAsTensorBoardWrites compares with a file of TensorBoard's own classes
// (testdata/events.py): the same records, the scalars to the bit.
func TestAsTensorBoardWrites(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, ticking())
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []int{0, 1, 300} {
		if err := w.Write(int64(step), Scalar("train/reward", -1/float64(step+1)), Histogram("train/advantage", numbers(step))); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile("testdata/events.tfevents")
	if err != nil {
		t.Fatal(err)
	}
	got, want := decode(t, b.Bytes()), decode(t, file)
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.time != w.time || g.step != w.step || g.version != w.version || g.scalar != w.scalar || len(g.tags) != len(w.tags) {
			t.Errorf("event %d is %+v, want %+v", i, g, w)
		}
		for n, xs := range w.histogram {
			if len(g.histogram[n]) != len(xs) {
				t.Fatalf("event %d: histogram field %d has %d numbers, want %d", i, n, len(g.histogram[n]), len(xs))
			}
			for j, x := range xs {
				if d := math.Abs(g.histogram[n][j] - x); d > 1e-9*math.Abs(x) {
					t.Errorf("event %d: histogram field %d: number %d is %g, want %g", i, n, j, g.histogram[n][j], x)
				}
			}
		}
	}
	if want[3].scalar != float64(float32(-1./301)) || want[3].histogram[3][0] != 51 {
		t.Errorf("the decoder reads %+v of the last event", want[3])
	}
}

// TestHistogram: every finite number lies in its bucket, what is not finite is
// left out, and nothing gives an empty histogram.
func TestHistogram(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, ticking())
	if err != nil {
		t.Fatal(err)
	}
	xs := []float64{math.NaN(), -1e300, -2, math.Copysign(0, -1), 1e-300, 3, 3, 1e300, math.Inf(1)}
	if err := w.Write(7, Histogram("x", xs), Histogram("nothing", nil)); err != nil {
		t.Fatal(err)
	}
	h := decode(t, b.Bytes())[1].histogram
	edges, counts := h[6], h[7]
	total := 0.0
	for i, n := range counts {
		total += n
		inside := 0.0
		for _, x := range xs {
			if x <= edges[i] && (i == 0 || x > edges[i-1]) {
				inside++
			}
		}
		if inside != n {
			t.Errorf("bucket up to %g holds %g numbers, want %g", edges[i], n, inside)
		}
	}
	if total != 7 {
		t.Errorf("%g numbers in buckets, want 7", total)
	}
}

type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrors(t *testing.T) {
	if _, err := NewWriter(full{}, ticking()); !errors.Is(err, errFull) {
		t.Errorf("error %v, want the writer's", err)
	}
}
