package plan

import (
	"fmt"
	"strconv"

	"placer/graph"
	"placer/graph/fuse"
	"placer/graph/remat"
	"placer/hw"
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
		return nil, f.OtherGraph(g)
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

// OtherGraph returns the error that the plan is not for g. Graphs of one name differ by what was
// asked of one file, so that the error then says what to ask again.
func (f *File) OtherGraph(g *graph.Graph) error {
	if f.GraphName == g.Name() {
		return fmt.Errorf("plan is for another graph %q (%.12s) than this one (%.12s): give the same graph file, --train, --master-weights and --dim as the search that wrote it", f.GraphName, f.GraphHash, g.Hash())
	}
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
		return nil, f.OtherGraph(g)
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

var (
	planKeys   = []string{"format", "graph", "machine", "devices", "device", "method", "priority", "fusion", "changes", "ops"}
	refKeys    = []string{"name", "hash"}
	changeKeys = []string{"hash", "recompute", "offload"}
)
