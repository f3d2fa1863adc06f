package plan

import (
	"fmt"
	"io"
	"math"
	"os"
	"strconv"

	"placer/graph"
	"placer/graph/fuse"
	"placer/graph/remat"
	"placer/hw"
	"placer/internal/fsx"
	"placer/internal/jsonx"
)

// Format is the value of "format" in a plan file that this package reads and
// writes.
const Format = "placer plan 1"

// ChangedFormat is that of a plan for a graph with changes.
const ChangedFormat = "placer plan 2"

// maxFile bounds a plan file; 84,000 ops need less than 1 MB, and 4 MB with their names.
const maxFile = 1 << 30

// File is a plan file: a plan with the names that tie it to its graph and its
// machine. Devices are indices into the file's own list of names, so a file can
// be read without graph and machine at hand.
type File struct {
	GraphName   string
	GraphHash   string
	MachineName string
	MachineHash string
	Method      string
	Devices     []string // names, in the machine's order
	Decision             // Device is into Devices
	// Names are those of the ops, [N] or nil. The file then says the device and the
	// priority of each op by its name too, beside the arrays.
	Names []string

	// Changes were made to the graph that GraphHash names, and ChangedHash is that of
	// the graph that the plan is for; none and empty where it is for the graph itself.
	Changes     remat.Changes
	ChangedHash string
}

// File returns the file form of p, a plan for g on m; it shares p's slices. The
// error is that of Check.
func (p *Plan) File(g *graph.Graph, m *hw.Machine) (*File, error) {
	if err := p.Check(g, m); err != nil {
		return nil, err
	}
	f := &File{GraphName: g.Name(), GraphHash: g.Hash(), MachineName: m.Name, MachineHash: m.Hash(), Method: p.Method, Decision: p.Decision}
	for i := range m.Devices {
		f.Devices = append(f.Devices, m.Devices[i].Name)
	}
	f.Names = namesOf(g)
	return f, nil
}

// namesOf returns the names of g's ops where they have modules, else nil: graphs of
// frameworks, whose ops a runtime knows by name. Plans of other graphs stay
// as short as they were.
func namesOf(g *graph.Graph) []string {
	named := false
	names := make([]string, g.NumOps())
	for i := range names {
		o := g.Op(graph.OpID(i))
		names[i] = o.Name
		named = named || o.Module != ""
	}
	if !named {
		return nil
	}
	return names
}

// ChangedFile returns the file form of p, a plan on m for g with changes, whose graph is
// changed; see File.
func (p *Plan) ChangedFile(g *graph.Graph, c remat.Changes, changed *graph.Graph, m *hw.Machine) (*File, error) {
	f, err := p.File(changed, m)
	if err != nil || c.None() {
		return f, err
	}
	f.GraphName, f.GraphHash, f.Changes, f.ChangedHash = g.Name(), g.Hash(), c, changed.Hash()
	return f, nil
}

// Graph returns the graph that the plan is for: g, or g with the plan's changes.
func (f *File) Graph(g *graph.Graph) (*graph.Graph, error) {
	if f.Changes.None() {
		return g, nil
	}
	if f.GraphHash != g.Hash() {
		return nil, f.otherGraph(g)
	}
	d, err := remat.Find(g).Derive(f.Changes)
	if err != nil {
		return nil, err
	}
	if d.Graph.Hash() != f.ChangedHash {
		return nil, fmt.Errorf("plan is for graph %q with changes that give %.12s here, and gave %.12s where it was made", f.GraphName, d.Graph.Hash(), f.ChangedHash)
	}
	return d.Graph, nil
}

func (f *File) otherGraph(g *graph.Graph) error {
	return fmt.Errorf("plan is for graph %q (%.12s), not for %q (%.12s)", f.GraphName, f.GraphHash, g.Name(), g.Hash())
}

// Plan returns the file's plan for g, which is that of Graph, on m: devices are found by name, so m may
// be another machine than the plan was made for (see SameMachine), as long as
// it has the devices that the plan uses. Names, where the file has some, must be the
// graph's. The result passes Check.
func (f *File) Plan(g *graph.Graph, m *hw.Machine) (*Plan, error) {
	hash := f.GraphHash
	if !f.Changes.None() {
		if hash = f.ChangedHash; f.GraphHash == g.Hash() {
			return nil, fmt.Errorf("plan is for graph %q with layers that recompute or offload, not for the graph itself", f.GraphName)
		}
	}
	if hash != g.Hash() {
		return nil, f.otherGraph(g)
	}
	for i, name := range f.Names {
		if i >= g.NumOps() || name != g.Op(graph.OpID(i)).Name {
			return nil, fmt.Errorf("op %d of the plan is %q, which graph %s does not have there", i, name, g.Name())
		}
	}
	index := map[string]uint8{}
	for i := range m.Devices {
		index[m.Devices[i].Name] = uint8(i)
	}
	p := &Plan{Graph: hash, Machine: m.Name, Method: f.Method, Decision: Decision{Device: make([]uint8, len(f.Device)), Priority: f.Priority, Fusion: f.Fusion}}
	for i, d := range f.Device {
		to, ok := index[f.Devices[d]]
		if !ok {
			place := strconv.Itoa(i)
			if i < g.NumOps() {
				place += " (" + g.Op(graph.OpID(i)).Name + ")"
			}
			return nil, fmt.Errorf("op %s is on device %q, which machine %s lacks", place, f.Devices[d], m.Name)
		}
		p.Device[i] = to
	}
	if err := p.Check(g, m); err != nil {
		return nil, err
	}
	if p.Fusion != nil {
		if err := fuse.Check(g, p.Device, p.Kernels(g)); err != nil {
			return nil, fmt.Errorf("fusion: %w", err)
		}
	}
	return p, nil
}

// SameMachine reports whether the plan was made for a machine of m's figures.
func (f *File) SameMachine(m *hw.Machine) bool { return f.MachineHash == m.Hash() }

// ReadFile reads the plan file at path.
func ReadFile(path string) (*File, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return Read(r, path)
}

// Read reads a plan file (docs/formats.md). name is the file's name for errors,
// which say file, line, op and reason.
func Read(r io.Reader, name string) (*File, error) {
	data, err := fsx.ReadAll(r, name, maxFile)
	if err != nil {
		return nil, err
	}
	f := &File{}
	if err := f.read(jsonx.New(data)); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

var (
	planKeys   = []string{"format", "graph", "machine", "devices", "device", "method", "priority", "fusion", "changes", "ops"}
	refKeys    = []string{"name", "hash"}
	changeKeys = []string{"hash", "recompute", "offload"}
)

func (f *File) read(r *jsonx.Reader) error {
	changed := false
	var named []namedOp
	err := r.Object(planKeys, 5, func(key int) (err error) {
		switch planKeys[key] {
		case "format":
			var s string
			if s, err = r.String(); err == nil && s != Format && s != ChangedFormat {
				err = r.Errorf("format is %q, want %q or %q", s, Format, ChangedFormat)
			}
			changed = s == ChangedFormat
		case "graph":
			f.GraphName, f.GraphHash, err = readRef(r)
		case "machine":
			f.MachineName, f.MachineHash, err = readRef(r)
		case "changes":
			err = f.readChanges(r)
		case "method":
			f.Method, err = r.String()
		case "devices":
			err = f.readDevices(r)
		case "device":
			err = r.Array(func(i int) error {
				d, err := r.Int(0, hw.MaxDevices-1)
				if err != nil {
					return fmt.Errorf("device of op %d: %w", i, err)
				}
				f.Device = append(f.Device, uint8(d))
				return nil
			})
		case "priority":
			f.Priority = []int32{}
			err = r.Array(func(i int) error {
				p, err := r.Int(0, math.MaxInt32)
				if err != nil {
					return fmt.Errorf("priority of op %d: %w", i, err)
				}
				f.Priority = append(f.Priority, int32(p))
				return nil
			})
		case "fusion":
			f.Fusion = []uint8{}
			err = r.Array(func(i int) error {
				p, err := r.Int(0, math.MaxUint8)
				if err != nil {
					return fmt.Errorf("fusion of op %d: %w", i, err)
				}
				f.Fusion = append(f.Fusion, uint8(p))
				return nil
			})
		case "ops":
			f.Names = []string{}
			err = r.Members(func(_ int, name string) error {
				o, err := readNamed(r)
				if err != nil {
					return fmt.Errorf("op %q: %w", name, err)
				}
				f.Names = append(f.Names, name)
				named = append(named, o)
				return nil
			})
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := r.End(); err != nil {
		return err
	}
	if changed == f.Changes.None() {
		return fmt.Errorf("changes go with format %q, and are in every such plan", ChangedFormat)
	}
	if err := f.check(); err != nil {
		return err
	}
	return f.checkNamed(named)
}

// namedOp is what the file says of an op by its name.
type namedOp struct {
	device   string
	priority int64 // -1: none
}

// readNamed reads [device, priority] or [device].
func readNamed(r *jsonx.Reader) (o namedOp, err error) {
	o.priority = -1
	n := 0
	err = r.Array(func(i int) (err error) {
		switch n++; i {
		case 0:
			o.device, err = r.String()
		case 1:
			o.priority, err = r.Int(0, math.MaxInt32)
		default:
			err = r.Errorf("want [device, priority] or [device]")
		}
		return err
	})
	if err == nil && n == 0 {
		err = r.Errorf("want [device, priority] or [device]")
	}
	return o, err
}

// checkNamed reports the first op of which the file says one thing by name and
// another in the arrays.
func (f *File) checkNamed(named []namedOp) error {
	for i, o := range named {
		priority := int64(-1)
		if f.Priority != nil {
			priority = int64(f.Priority[i])
		}
		if d := f.Devices[f.Device[i]]; o.device != d || o.priority != priority {
			return fmt.Errorf("op %d: %q is on %s with priority %d by its name, on %s with %d in the arrays", i, f.Names[i], o.device, o.priority, d, priority)
		}
	}
	return nil
}

// check reports the first contradiction within the file.
func (f *File) check() error {
	if len(f.Device) == 0 {
		return fmt.Errorf("plan places no op")
	}
	if f.GraphHash == "" || f.MachineHash == "" {
		return fmt.Errorf("plan has no hash of its graph or of its machine")
	}
	for i, d := range f.Device {
		if int(d) >= len(f.Devices) {
			return fmt.Errorf("op %d is on device %d, the file lists %d devices", i, d, len(f.Devices))
		}
	}
	if f.Names != nil {
		if len(f.Names) != len(f.Device) {
			return fmt.Errorf("plan names %d ops of %d", len(f.Names), len(f.Device))
		}
		taken := make(map[string]bool, len(f.Names))
		for i, name := range f.Names {
			if name == "" || taken[name] {
				return fmt.Errorf("op %d: name %q is empty or taken", i, name)
			}
			taken[name] = true
		}
	}
	if f.Fusion != nil && len(f.Fusion) != len(f.Device) {
		return fmt.Errorf("plan has %d fusion priorities for %d ops", len(f.Fusion), len(f.Device))
	}
	if f.Priority == nil {
		return nil
	}
	if len(f.Priority) != len(f.Device) {
		return fmt.Errorf("plan has %d priorities for %d ops", len(f.Priority), len(f.Device))
	}
	seen := make([]bool, len(f.Priority))
	for i, p := range f.Priority {
		if p < 0 || int(p) >= len(seen) || seen[p] {
			return fmt.Errorf("op %d: priority %d is out of range or taken", i, p)
		}
		seen[p] = true
	}
	return nil
}

func readRef(r *jsonx.Reader) (name, hash string, err error) {
	err = r.Object(refKeys, 2, func(key int) (err error) {
		if refKeys[key] == "name" {
			name, err = r.String()
		} else if hash, err = r.String(); err == nil && hash == "" {
			err = r.Errorf("hash is empty")
		}
		return err
	})
	return name, hash, err
}

func (f *File) readChanges(r *jsonx.Reader) error {
	layers := func(to *[]int32) error {
		return r.Array(func(int) error {
			k, err := r.Int(1, math.MaxInt32)
			*to = append(*to, int32(k))
			return err
		})
	}
	return r.Object(changeKeys, 1, func(key int) (err error) {
		switch changeKeys[key] {
		case "hash":
			if f.ChangedHash, err = r.String(); err == nil && f.ChangedHash == "" {
				err = r.Errorf("hash is empty")
			}
		case "recompute":
			err = layers(&f.Changes.Recompute)
		case "offload":
			err = layers(&f.Changes.Offload)
		}
		return err
	})
}

func (f *File) readDevices(r *jsonx.Reader) error {
	seen := map[string]bool{}
	return r.Array(func(i int) error {
		s, err := r.String()
		if err != nil {
			return err
		}
		if s == "" || seen[s] || i >= hw.MaxDevices {
			return r.Errorf("device %d: name %q is empty or taken, or more than %d devices", i, s, hw.MaxDevices)
		}
		seen[s] = true
		f.Devices = append(f.Devices, s)
		return nil
	})
}

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
