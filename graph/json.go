package graph

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"placer/internal/jsonx"
	"placer/units"
)

// Format is the value of "format" in a graph file that this package reads and
// writes.
const Format = "placer graph 1"

// Read reads a graph in its JSON form (docs/formats.md). name is the file's
// name for errors, which say file, line, op and reason. The ops may stand in
// any order; what Write wrote gives the same Hash again. Sizes that the file leaves open
// are those that it says itself.
func Read(data []byte, name string) (*Graph, error) {
	g, _, err := ReadAt(data, name, nil)
	return g, err
}

// ReadAt is Read with the sizes given by name, for those that the file leaves open, which it
// returns too in the file's order. Names that the file does not have change nothing.
func ReadAt(data []byte, name string, sizes map[string]int64) (*Graph, []Dim, error) {
	f := &graphFile{r: jsonx.New(data), at: -1, ids: map[string]OpID{}, given: sizes, sizes: map[string]int64{}}
	f.r.Context = f.where
	g, err := f.read()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	return g, f.dims, nil
}

// Keys of the JSON form; the first ones are required.
var (
	graphKeys  = []string{"format", "ops", "name", "dims"}
	opKeys     = []string{"name", "kind", "phase", "dtype", "precise", "flops", "gemm", "repeats", "kernels", "bytes", "resident", "params", "workspace", "layer", "group", "forward", "module", "in", "control", "out"}
	tensorKeys = []string{"dtype", "shape", "bytes", "resident"}
)

// graphFile is a graph while it is read. References are names, resolved once
// all ops are known.
type graphFile struct {
	r    *jsonx.Reader
	at   int // op being read, -1 outside of ops
	name string
	ops  []fileOp
	ids  map[string]OpID

	given, sizes map[string]int64 // of what is open: the reader's, and those that hold
	dims         []Dim
}

type fileOp struct {
	op      Op
	in      []string
	control []string
	forward string
	outs    []Tensor
}

// where names the op being read.
func (f *graphFile) where() string {
	switch {
	case f.at < 0:
		return ""
	case f.at < len(f.ops) && f.ops[f.at].op.Name != "":
		return fmt.Sprintf("op %d (%s)", f.at, f.ops[f.at].op.Name)
	}
	return fmt.Sprintf("op %d", f.at)
}

func (f *graphFile) read() (*Graph, error) {
	r := f.r
	err := r.Object(graphKeys, 2, func(key int) (err error) {
		switch graphKeys[key] {
		case "format":
			var s string
			if s, err = r.String(); err == nil && s != Format {
				err = r.Errorf("format is %q, want %q", s, Format)
			}
		case "name":
			f.name, err = f.label()
		case "dims":
			err = f.readDims()
		case "ops":
			f.ops = []fileOp{}
			err = r.Array(f.op)
			f.at = -1
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	return f.build()
}

func (f *graphFile) op(i int) error {
	f.at = i
	f.ops = append(f.ops, fileOp{op: Op{Bytes: Auto, Forward: None}})
	x, r := &f.ops[i], f.r
	o := &x.op
	err := r.Object(opKeys, 2, func(key int) (err error) {
		switch opKeys[key] {
		case "name":
			var s string
			if s, err = f.label(); err != nil {
				return err
			}
			if first, twice := f.ids[s]; twice || s == "" {
				return r.Errorf("name %q is empty or that of op %d too", s, first)
			}
			o.Name, f.ids[s] = s, OpID(i)
		case "kind":
			var s string
			s, err = f.label()
			o.Kind = Kind(s)
			if err == nil && s == "" {
				err = r.Errorf("kind is empty")
			}
		case "phase":
			o.Phase, err = f.phase()
		case "dtype":
			o.DType, err = f.dtype()
		case "precise":
			o.Precise, err = r.Bool()
		case "flops":
			var x float64
			if x, err = f.float(); err == nil && x < 0 {
				err = r.Errorf("%v FLOPs", x)
			}
			o.FLOPs = units.FLOPs(x)
		case "gemm":
			o.GEMM, err = f.gemm()
		case "repeats":
			o.Repeats, err = r.Int(1, MaxRepeats)
		case "kernels":
			o.Kernels, err = r.Int(1, MaxRepeats)
		case "bytes":
			o.Bytes, err = f.bytes()
		case "resident":
			o.Resident, err = f.bytes()
		case "params":
			o.Params, err = r.Int(0, math.MaxInt64)
		case "workspace":
			o.Workspace, err = f.bytes()
		case "layer":
			o.Layer, err = f.int32()
		case "group":
			o.Group, err = f.int32()
		case "forward":
			x.forward, err = r.String()
		case "module":
			o.Module, err = f.label()
		case "in":
			x.in, err = f.names()
		case "control":
			x.control, err = f.names()
		case "out":
			err = r.Array(func(int) error { return f.tensor(x) })
		}
		return err
	})
	for t := range x.outs {
		if y := &x.outs[t]; y.DType == numDTypes {
			y.DType = o.DType
		}
	}
	return err
}

// label reads a name that messages and tables can show on one line.
func (f *graphFile) label() (string, error) {
	s, err := f.r.String()
	if err == nil && !OneLine(s) {
		err = f.r.Errorf("name %q has control characters", s)
	}
	return s, err
}

// OneLine reports whether messages, tables and files can show s on one line.
func OneLine(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return unicode.IsControl(c) || c == '\u2028' || c == '\u2029' })
}

func (f *graphFile) phase() (Phase, error) {
	s, err := f.r.String()
	if err != nil {
		return 0, err
	}
	for p, name := range phaseNames {
		if name == s {
			return Phase(p), nil
		}
	}
	return 0, f.r.Errorf("unknown phase %q", s)
}

func (f *graphFile) dtype() (DType, error) {
	s, err := f.r.String()
	if err != nil {
		return 0, err
	}
	d, err := ParseDType(s)
	if err != nil {
		return 0, f.r.Errorf("%w", err)
	}
	return d, nil
}

func (f *graphFile) gemm() (GEMM, error) {
	var d [4]int64
	n := 0
	err := f.r.Array(func(i int) (err error) {
		if n = i + 1; n > len(d) {
			return f.r.Errorf("gemm has more than batch, m, n and k")
		}
		d[i], err = f.int(1, math.MaxInt64)
		return err
	})
	if err == nil && n != len(d) {
		err = f.r.Errorf("gemm has %d numbers, want batch, m, n and k", n)
	}
	return GEMM{d[0], d[1], d[2], d[3]}, err
}

func (f *graphFile) bytes() (units.Bytes, error) {
	n, err := f.int(0, int64(MaxBytes))
	return units.Bytes(n), err
}

func (f *graphFile) int32() (int32, error) {
	n, err := f.r.Int(0, math.MaxInt32)
	return int32(n), err
}

func (f *graphFile) names() (list []string, err error) {
	err = f.r.Array(func(int) error {
		s, err := f.r.String()
		list = append(list, s)
		return err
	})
	return list, err
}

func (f *graphFile) tensor(x *fileOp) error {
	r := f.r
	t := Tensor{DType: numDTypes, Bytes: Auto} // the op's type, which a later key may set
	err := r.Object(tensorKeys, 0, func(key int) (err error) {
		switch tensorKeys[key] {
		case "dtype":
			t.DType, err = f.dtype()
		case "shape":
			t.Shape = Shape{}
			err = r.Array(func(int) error {
				d, err := f.int(0, math.MaxInt64)
				t.Shape = append(t.Shape, d)
				return err
			})
		case "bytes":
			t.Bytes, err = f.bytes()
		case "resident":
			t.Resident, err = r.Bool()
		}
		return err
	})
	if err != nil {
		return err
	}
	if t.Shape == nil && t.Bytes < 0 {
		return r.Errorf("output %d has neither shape nor bytes", len(x.outs))
	}
	if _, err := t.Shape.Elements(); err != nil {
		return r.Errorf("output %d: %w", len(x.outs), err)
	}
	x.outs = append(x.outs, t)
	return nil
}

// build resolves the names and hands everything to a Builder.
func (f *graphFile) build() (*Graph, error) {
	b := NewBuilder(f.name)
	first := make([]TensorID, len(f.ops)+1)
	for i := range f.ops {
		first[i+1] = first[i] + TensorID(len(f.ops[i].outs))
	}
	for i := range f.ops {
		x := &f.ops[i]
		fail := func(format string, a ...any) error {
			return fmt.Errorf("op %d (%s): %w", i, x.op.Name, fmt.Errorf(format, a...))
		}
		in := make([]TensorID, 0, len(x.in))
		for k, ref := range x.in {
			name, slot := splitRef(ref)
			p, ok := f.ids[name]
			if !ok {
				return nil, fail("input %d: op %q does not exist", k, name)
			}
			if slot >= len(f.ops[p].outs) {
				return nil, fail("input %d: op %q has %d outputs, want output %d", k, name, len(f.ops[p].outs), slot)
			}
			in = append(in, first[p]+TensorID(slot))
		}
		if x.forward != "" {
			p, ok := f.ids[x.forward]
			if !ok {
				return nil, fail("forward: op %q does not exist", x.forward)
			}
			x.op.Forward = p
		}
		b.Op(x.op, in, x.outs...)
	}
	for i := range f.ops {
		for _, name := range f.ops[i].control {
			p, ok := f.ids[name]
			if !ok {
				return nil, fmt.Errorf("op %d (%s): control: op %q does not exist", i, f.ops[i].op.Name, name)
			}
			b.Control(p, OpID(i))
		}
	}
	return b.Build()
}

// splitRef splits a reference into the op's name and the output slot: what
// follows the last colon when that is a number, else slot 0.
func splitRef(ref string) (name string, slot int) {
	c := strings.LastIndexByte(ref, ':')
	if c < 0 || !isNumber(ref[c+1:]) {
		return ref, 0
	}
	slot, err := strconv.Atoi(ref[c+1:])
	if err != nil {
		return ref, 0 // more digits than an int holds
	}
	return ref[:c], slot
}

func isNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
