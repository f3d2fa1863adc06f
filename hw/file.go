package hw

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"placer/units"
)

// Format is the value of "format" in a machine file that this package reads.
const Format = "placer machine 1"

// maxFile bounds a machine file: MaxDevices devices with explicit routes need
// less than 1 MB.
const maxFile = 8 << 20

// ReadFile reads the machine file at path. Errors name the file, the line and
// the reason.
func ReadFile(path string) (*Machine, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Read reads a machine file: strict JSON (unknown keys, repeated keys and
// trailing data are errors) in which every quantity is a string with its unit.
//
//	{"format": "placer machine 1", "name": "box",
//	 "models":  {"P100": {"kind": "gpu", "arch": "sm_60", "capacity": "16 GB", "reserve": "500 MB",
//	             "memory_bandwidth": "732 GB/s", "peak": {"f32": "9.3 TFLOP/s"}, "launch": "5 us",
//	             "sms": 56, "l2": "4 MiB", "source": "..."}},
//	 "devices": [{"name": "gpu:[0-7]", "model": "P100"}],
//	 "cables":  [{"ends": ["gpu:[0-7]", "switch"], "bandwidth": "11 GB/s", "latency": "5 us", "source": "..."}]}
//
// A cable entry whose ends are ranges joins each name of one end to each of the
// other (a range to itself: every pair once, a full mesh); Connect derives the
// routes. A model may have constants fitted to measurements under "calibration";
// see Calibration. Instead of cables, or besides them, "links" and "routes" may be
// given explicitly; a route replaces the derived one.
func Read(r io.Reader) (*Machine, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("machine file is longer than %d bytes", maxFile)
	}
	f, v, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	return f.machine(v)
}

func (f *jsonFile) machine(v *jsonValue) (*Machine, error) {
	if err := f.object(v, []string{"format", "name", "models", "devices"}, []string{"note", "cables", "links", "routes"}); err != nil {
		return nil, err
	}
	format, err := f.text(v.member("format"))
	if err == nil && format != Format {
		err = f.errorAt(v.member("format").at, "format", "is %q, want %q", format, Format)
	}
	if err != nil {
		return nil, err
	}
	m := &Machine{}
	if m.Name, err = f.text(v.member("name")); err != nil {
		return nil, err
	}
	if m.Note, err = f.text(v.member("note")); err != nil {
		return nil, err
	}
	if err := f.devices(m, v); err != nil {
		return nil, err
	}
	if err := f.cables(m, v.member("cables")); err != nil {
		return nil, err
	}
	if err := f.links(m, v.member("links")); err != nil {
		return nil, err
	}
	if err := f.routes(m, v.member("routes")); err != nil {
		return nil, err
	}
	if err := m.Check(); err != nil {
		return nil, f.errorAt(v.at, "", "%w", err)
	}
	return m, nil
}

func (f *jsonFile) devices(m *Machine, v *jsonValue) error {
	models := v.member("models")
	if models.kind != '{' {
		return f.errorAt(models.at, models.path, "is %s, want an object", models.describe())
	}
	known := map[string]Device{}
	for _, x := range models.members {
		d, err := f.model(x.jsonValue)
		if err != nil {
			return err
		}
		d.Model = x.name
		known[x.name] = d
	}
	list := v.member("devices")
	if err := f.array(list); err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, x := range list.list {
		if err := f.object(x, []string{"name", "model"}, nil); err != nil {
			return err
		}
		name, err := f.text(x.member("name"))
		if err != nil {
			return err
		}
		model, err := f.text(x.member("model"))
		if err != nil {
			return err
		}
		d, ok := known[model]
		if !ok {
			return f.errorAt(x.member("model").at, x.member("model").path, "model %q is not among models", model)
		}
		names, err := expand(name)
		if err != nil {
			return f.errorAt(x.at, x.path, "%w", err)
		}
		for _, n := range names {
			if taken[n] {
				return f.errorAt(x.at, x.path, "device %q occurs twice", n)
			}
			taken[n] = true
			d.Name = n
			m.Devices = append(m.Devices, d)
		}
	}
	if len(m.Devices) < 1 || len(m.Devices) > MaxDevices {
		return f.errorAt(list.at, list.path, "%d devices, want 1 to %d", len(m.Devices), MaxDevices)
	}
	return nil
}

func (f *jsonFile) model(v *jsonValue) (d Device, err error) {
	if err := f.object(v, []string{"kind", "capacity", "memory_bandwidth", "peak", "launch", "sms", "source"}, []string{"reserve", "arch", "l2", "graph_launch", "calibration"}); err != nil {
		return d, err
	}
	kind, err := f.text(v.member("kind"))
	if err != nil {
		return d, err
	}
	if d.Kind = Kind(kind); d.Kind != GPU && d.Kind != CPU {
		return d, f.errorAt(v.member("kind").at, v.member("kind").path, "is %q, want gpu or cpu", kind)
	}
	if d.Arch, err = f.text(v.member("arch")); err != nil {
		return d, err
	}
	if d.Capacity, err = quantity(f, v.member("capacity"), units.ParseBytes); err != nil {
		return d, err
	}
	reserve, err := quantity(f, v.member("reserve"), units.ParseBytes)
	if err != nil {
		return d, err
	}
	if reserve < 0 || reserve >= d.Capacity {
		return d, f.errorAt(v.at, v.path, "capacity %v and reserve %v leave no memory", d.Capacity, reserve)
	}
	d.Memory = d.Capacity - reserve
	if d.L2, err = quantity(f, v.member("l2"), units.ParseBytes); err != nil {
		return d, err
	}
	if d.L2 < 0 {
		return d, f.errorAt(v.member("l2").at, v.member("l2").path, "is %v, want not negative", d.L2)
	}
	if d.MemoryBandwidth, err = quantity(f, v.member("memory_bandwidth"), units.ParseBytesPerSecond); err != nil {
		return d, err
	}
	if d.Launch, err = quantity(f, v.member("launch"), units.ParseSeconds); err != nil {
		return d, err
	}
	if d.GraphLaunch, err = quantity(f, v.member("graph_launch"), units.ParseSeconds); err != nil {
		return d, err
	}
	if d.SMs, err = f.integer(v.member("sms")); err != nil {
		return d, err
	}
	if d.Source, err = f.text(v.member("source")); err != nil {
		return d, err
	}
	if d.Calibration, err = f.calibration(v.member("calibration")); err != nil {
		return d, err
	}
	peak := v.member("peak")
	if err := f.object(peak, []string{"f32"}, elementTypes); err != nil {
		return d, err
	}
	d.Peak = map[string]units.FLOPsPerSecond{}
	for _, x := range peak.members {
		rate, err := quantity(f, x.jsonValue, units.ParseFLOPsPerSecond)
		if err == nil && !(rate > 0) {
			err = f.errorAt(x.at, x.path, "is %v, want a positive rate", rate)
		}
		if err != nil {
			return d, err
		}
		d.Peak[x.name] = rate
	}
	return d, nil
}

// elementTypes are the keys of "peak" besides f32: the names of the graph's
// element types.
var elementTypes = []string{"f16", "bf16", "f64", "tf32", "f8", "i8", "i32", "i64", "bool"}

func (f *jsonFile) cables(m *Machine, v *jsonValue) error {
	m.Routes = make([][]int32, len(m.Devices)*len(m.Devices))
	if v == nil {
		return nil
	}
	if err := f.array(v); err != nil {
		return err
	}
	var cables []Cable
	joined := map[[2]string]bool{}
	for _, x := range v.list {
		if err := f.object(x, []string{"ends", "bandwidth", "latency", "source"}, nil); err != nil {
			return err
		}
		var c Cable
		var err error
		if c.Bandwidth, c.Latency, c.Source, err = f.figures(x); err != nil {
			return err
		}
		ends := x.member("ends")
		if ends.kind != '[' || len(ends.list) != 2 {
			return f.errorAt(ends.at, ends.path, "want an array of two names")
		}
		var names [2][]string
		for k := range names {
			s, err := f.text(ends.list[k])
			if err != nil {
				return err
			}
			if names[k], err = expand(s); err != nil {
				return f.errorAt(ends.at, ends.path, "%w", err)
			}
		}
		mesh := slices.Equal(names[0], names[1])
		for i, a := range names[0] {
			for j, b := range names[1] {
				if mesh && j <= i && len(names[0]) > 1 {
					continue
				}
				if a == b || joined[[2]string{a, b}] || joined[[2]string{b, a}] {
					return f.errorAt(ends.at, ends.path, "%q and %q are one end or joined already", a, b)
				}
				joined[[2]string{a, b}] = true
				c.A, c.B = a, b
				cables = append(cables, c)
			}
		}
	}
	if err := m.Connect(cables); err != nil {
		return f.errorAt(v.at, v.path, "%w", err)
	}
	return nil
}

// figures reads what cables and links share.
func (f *jsonFile) figures(v *jsonValue) (b units.BytesPerSecond, l units.Seconds, source string, err error) {
	if b, err = quantity(f, v.member("bandwidth"), units.ParseBytesPerSecond); err != nil {
		return
	}
	if l, err = quantity(f, v.member("latency"), units.ParseSeconds); err != nil {
		return
	}
	if !(b > 0) || !(l > 0) {
		err = f.errorAt(v.at, v.path, "bandwidth %v and latency %v must be positive", b, l)
		return
	}
	source, err = f.text(v.member("source"))
	return
}

func (f *jsonFile) links(m *Machine, v *jsonValue) error {
	if v == nil {
		return nil
	}
	if err := f.array(v); err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, l := range m.Links {
		taken[l.Name] = true
	}
	for _, x := range v.list {
		if err := f.object(x, []string{"name", "bandwidth", "latency", "source"}, nil); err != nil {
			return err
		}
		var l Link
		var err error
		if l.Name, err = f.text(x.member("name")); err != nil {
			return err
		}
		if l.Name == "" || taken[l.Name] {
			return f.errorAt(x.at, x.path, "link name %q is empty or taken", l.Name)
		}
		taken[l.Name] = true
		if l.Bandwidth, l.Latency, l.Source, err = f.figures(x); err != nil {
			return err
		}
		m.Links = append(m.Links, l)
	}
	return nil
}

func (f *jsonFile) routes(m *Machine, v *jsonValue) error {
	if v == nil {
		return nil
	}
	if err := f.array(v); err != nil {
		return err
	}
	device, link := map[string]int{}, map[string]int32{}
	for i, d := range m.Devices {
		device[d.Name] = i
	}
	for i, l := range m.Links {
		link[l.Name] = int32(i)
	}
	given := map[[2]int]bool{}
	for _, x := range v.list {
		if err := f.object(x, []string{"from", "to", "links"}, nil); err != nil {
			return err
		}
		var ends [2]int
		for k, key := range []string{"from", "to"} {
			name, err := f.text(x.member(key))
			if err != nil {
				return err
			}
			i, ok := device[name]
			if !ok {
				return f.errorAt(x.member(key).at, x.member(key).path, "device %q does not exist", name)
			}
			ends[k] = i
		}
		if ends[0] == ends[1] || given[ends] {
			return f.errorAt(x.at, x.path, "the route from %s to %s leads nowhere or is given twice", m.Devices[ends[0]].Name, m.Devices[ends[1]].Name)
		}
		given[ends] = true
		list := x.member("links")
		if err := f.array(list); err != nil {
			return err
		}
		route := make([]int32, 0, len(list.list))
		for _, y := range list.list {
			name, err := f.text(y)
			if err != nil {
				return err
			}
			l, ok := link[name]
			if !ok {
				return f.errorAt(y.at, y.path, "link %q does not exist", name)
			}
			if slices.Contains(route, l) {
				return f.errorAt(y.at, y.path, "link %q occurs twice in the route", name)
			}
			route = append(route, l)
		}
		m.Routes[ends[0]*len(m.Devices)+ends[1]] = route
	}
	return nil
}

// Write writes m as a machine file with explicit links and routes; Read gives
// an equal machine back. It refuses a machine that does not pass Check, or
// whose devices of one model differ in their figures.
func (m *Machine) Write(w io.Writer) error {
	if err := m.Check(); err != nil {
		return err
	}
	type model struct {
		Kind      Kind                            `json:"kind"`
		Arch      string                          `json:"arch,omitempty"`
		Capacity  units.Bytes                     `json:"capacity"`
		Reserve   units.Bytes                     `json:"reserve"`
		Bandwidth units.BytesPerSecond            `json:"memory_bandwidth"`
		Peak      map[string]units.FLOPsPerSecond `json:"peak"` // encoding/json sorts keys
		Launch    units.Seconds                   `json:"launch"`
		Graph     units.Seconds                   `json:"graph_launch,omitempty"`
		SMs       int                             `json:"sms"`
		L2        units.Bytes                     `json:"l2"`
		Source    string                          `json:"source"`

		Calibration *Calibration `json:"calibration,omitempty"`
	}
	type device struct {
		Name  string `json:"name"`
		Model string `json:"model"`
	}
	type route struct {
		From  string   `json:"from"`
		To    string   `json:"to"`
		Links []string `json:"links"`
	}
	out := struct {
		Format  string           `json:"format"`
		Name    string           `json:"name"`
		Note    string           `json:"note,omitempty"`
		Models  map[string]model `json:"models"`
		Devices []device         `json:"devices"`
		Links   []Link           `json:"links"`
		Routes  []route          `json:"routes"`
	}{Format: Format, Name: m.Name, Note: m.Note, Models: map[string]model{}, Devices: []device{}, Links: m.Links, Routes: []route{}}
	if out.Links == nil {
		out.Links = []Link{}
	}
	first := map[string]*Device{}
	for i := range m.Devices {
		d := &m.Devices[i]
		if e := first[d.Model]; e != nil && !e.SameFigures(d) {
			return fmt.Errorf("machine %s: devices %s and %s are both of model %q but differ", m.Name, e.Name, d.Name, d.Model)
		} else if e == nil {
			first[d.Model] = d
			capacity := max(d.Capacity, d.Memory)
			out.Models[d.Model] = model{d.Kind, d.Arch, capacity, capacity - d.Memory, d.MemoryBandwidth, d.Peak, d.Launch, d.GraphLaunch, d.SMs, d.L2, d.Source, d.Calibration}
		}
		out.Devices = append(out.Devices, device{d.Name, d.Model})
	}
	for s := range m.Devices {
		for t := range m.Devices {
			if s == t {
				continue
			}
			r := route{m.Devices[s].Name, m.Devices[t].Name, []string{}}
			for _, l := range m.Route(s, t) {
				r.Links = append(r.Links, m.Links[l].Name)
			}
			out.Routes = append(out.Routes, r)
		}
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(out); err != nil {
		return err
	}
	_, err := w.Write(buf.Bytes())
	return err
}
