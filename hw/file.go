package hw

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"placer/internal/fsx"
	"placer/internal/jsonx"
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
	data, err := fsx.ReadFile(path, maxFile)
	if err != nil {
		return nil, err
	}
	m, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Read reads a machine file: strict JSON (unknown keys, repeated keys and
// trailing data are errors) in which every quantity is a string with its unit. gzip may
// have compressed it.
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
// see Calibration. Cables and links may say "occupies": "sender", see EndCosts, and
// what they are of, see Medium. Instead of cables, or besides them, "links" and "routes" may be
// given explicitly; a route replaces the derived one.
func Read(r io.Reader) (*Machine, error) {
	data, err := fsx.Read(r, "machine file", maxFile)
	if err != nil {
		return nil, err
	}
	return parse(data)
}

func parse(data []byte) (*Machine, error) {
	f, v, err := parseJSON(data)
	if err != nil {
		return nil, err
	}
	return f.machine(v)
}

func (f *jsonFile) machine(v *jsonValue) (*Machine, error) {
	m := &Machine{}
	// The format comes first: a plan has other keys altogether.
	if format := v.member("format"); format != nil && f.text(format) != Format {
		f.fail(format, "is %q, want %q", format.text, Format)
	}
	if f.object(v, []string{"format", "name", "models", "devices"}, []string{"note", "cables", "links", "routes"}) {
		m.Name, m.Note = f.text(v.member("name")), f.text(v.member("note"))
		f.devices(m, v)
		f.cables(m, v.member("cables"))
		f.links(m, v.member("links"))
		f.routes(m, v.member("routes"))
	}
	if f.err != nil {
		return nil, f.err
	}
	err := m.Check()
	if err == nil {
		err = m.limits()
	}
	if err != nil {
		return nil, f.errorAt(v.at, "", "%w", err)
	}
	return m, nil
}

func (f *jsonFile) devices(m *Machine, v *jsonValue) {
	models, list := v.member("models"), v.member("devices")
	if models.kind != '{' {
		f.fail(models, "is %s, want an object", models.describe())
	}
	known := map[string]Device{}
	for _, x := range models.members {
		d := f.model(x.jsonValue)
		d.Model = x.name
		known[x.name] = d
	}
	taken := map[string]bool{}
	for _, x := range f.elements(list) {
		if !f.object(x, []string{"name", "model"}, nil) {
			return
		}
		name, model := f.text(x.member("name")), f.text(x.member("model"))
		d, ok := known[model]
		if !ok {
			f.fail(x.member("model"), "model %q is not among models", model)
		}
		names, err := expand(name)
		if err != nil {
			f.fail(x, "%w", err)
		}
		for _, n := range names {
			if taken[n] {
				f.fail(x, "device %q occurs twice", n)
			}
			taken[n] = true
			d.Name = n
			m.Devices = append(m.Devices, d)
		}
	}
	if len(m.Devices) < 1 || len(m.Devices) > MaxDevices {
		f.fail(list, "%d devices, want 1 to %d", len(m.Devices), MaxDevices)
	}
}

func (f *jsonFile) model(v *jsonValue) (d Device) {
	if !f.object(v, []string{"kind", "capacity", "memory_bandwidth", "peak", "launch", "sms", "source"}, []string{"reserve", "arch", "l2", "graph_launch", "calibration", "shared_memory_bandwidth"}) {
		return d
	}
	if d.Kind = Kind(f.text(v.member("kind"))); d.Kind != GPU && d.Kind != CPU {
		f.fail(v.member("kind"), "is %q, want gpu or cpu", d.Kind)
	}
	d.Arch = f.text(v.member("arch"))
	d.Capacity = quantity(f, v.member("capacity"), units.ParseBytes)
	reserve := quantity(f, v.member("reserve"), units.ParseBytes)
	if reserve < 0 || reserve >= d.Capacity {
		f.fail(v, "capacity %v and reserve %v leave no memory", d.Capacity, reserve)
	}
	d.Memory = d.Capacity - reserve
	if d.L2 = quantity(f, v.member("l2"), units.ParseBytes); d.L2 < 0 {
		f.fail(v.member("l2"), "is %v, want not negative", d.L2)
	}
	d.MemoryBandwidth = quantity(f, v.member("memory_bandwidth"), units.ParseBytesPerSecond)
	d.SharedMemoryBandwidth = positive(f, v.member("shared_memory_bandwidth"), units.ParseBytesPerSecond)
	d.Launch = quantity(f, v.member("launch"), units.ParseSeconds)
	d.GraphLaunch = quantity(f, v.member("graph_launch"), units.ParseSeconds)
	d.SMs = f.integer(v.member("sms"))
	d.Source = f.text(v.member("source"))
	d.Calibration = f.calibration(v.member("calibration"))
	peak := v.member("peak")
	if !f.object(peak, []string{"f32"}, elementTypes) {
		return d
	}
	d.Peak = map[string]units.FLOPsPerSecond{}
	for _, x := range peak.members {
		rate := quantity(f, x.jsonValue, units.ParseFLOPsPerSecond)
		if !(rate > 0) {
			f.fail(x.jsonValue, "is %v, want a positive rate", rate)
		}
		d.Peak[x.name] = rate
	}
	return d
}

// elementTypes are the keys of "peak" besides f32: the names of the graph's
// element types.
var elementTypes = []string{"f16", "bf16", "f64", "tf32", "f8", "i8", "i32", "i64", "bool", "f4"}

func (f *jsonFile) cables(m *Machine, v *jsonValue) {
	if f.err != nil {
		return
	}
	m.Routes = make([][]int32, len(m.Devices)*len(m.Devices))
	if v == nil {
		return
	}
	var cables []Cable
	joined := map[[2]string]bool{}
	for _, x := range f.elements(v) {
		if !f.object(x, []string{"ends", "bandwidth", "latency", "source"}, linkKeys) {
			return
		}
		var c Cable
		c.Bandwidth, c.Latency, c.Source = f.figures(x)
		c.EndCosts, c.Medium = f.endCosts(x, c.Bandwidth, c.Latency), f.medium(x)
		ends := x.member("ends")
		if ends.kind != '[' || len(ends.list) != 2 {
			f.fail(ends, "want an array of two names")
			return
		}
		var names [2][]string
		for k := range names {
			s := f.text(ends.list[k])
			if f.err != nil {
				return
			}
			var err error
			if names[k], err = expand(s); err != nil {
				f.fail(ends, "%w", err)
			}
		}
		mesh := slices.Equal(names[0], names[1])
		for i, a := range names[0] {
			for j, b := range names[1] {
				if mesh && j <= i && len(names[0]) > 1 {
					continue
				}
				if a == b || joined[[2]string{a, b}] || joined[[2]string{b, a}] {
					f.fail(ends, "%q and %q are one end or joined already", a, b)
				}
				joined[[2]string{a, b}] = true
				c.A, c.B = a, b
				cables = append(cables, c)
			}
		}
	}
	if f.err != nil {
		return
	}
	if err := m.Connect(cables); err != nil {
		f.fail(v, "%w", err)
	}
}

// linkKeys are the keys that a cable or link may have.
var linkKeys = slices.Concat(endCostKeys, mediumKeys)

// figures reads what cables and links share.
func (f *jsonFile) figures(v *jsonValue) (b units.BytesPerSecond, l units.Seconds, source string) {
	b, l = quantity(f, v.member("bandwidth"), units.ParseBytesPerSecond), quantity(f, v.member("latency"), units.ParseSeconds)
	if !(b > 0) || !(l > 0) {
		f.fail(v, "bandwidth %v and latency %v must be positive", b, l)
	}
	return b, l, f.text(v.member("source"))
}

func (f *jsonFile) links(m *Machine, v *jsonValue) {
	taken := map[string]bool{}
	for _, l := range m.Links {
		taken[l.Name] = true
	}
	for _, x := range f.elements(v) {
		if !f.object(x, []string{"name", "bandwidth", "latency", "source"}, linkKeys) {
			return
		}
		l := Link{Name: f.text(x.member("name"))}
		if l.Name == "" || taken[l.Name] {
			f.fail(x, "link name %q is empty or taken", l.Name)
		}
		taken[l.Name] = true
		l.Bandwidth, l.Latency, l.Source = f.figures(x)
		l.EndCosts, l.Medium = f.endCosts(x, l.Bandwidth, l.Latency), f.medium(x)
		m.Links = append(m.Links, l)
	}
}

func (f *jsonFile) routes(m *Machine, v *jsonValue) {
	device, link := map[string]int{}, map[string]int32{}
	for i, d := range m.Devices {
		device[d.Name] = i
	}
	for i, l := range m.Links {
		link[l.Name] = int32(i)
	}
	given := map[[2]int]bool{}
	for _, x := range f.elements(v) {
		if !f.object(x, []string{"from", "to", "links"}, nil) {
			return
		}
		var ends [2]int
		for k, key := range []string{"from", "to"} {
			name := f.text(x.member(key))
			i, ok := device[name]
			if !ok {
				f.fail(x.member(key), "device %q does not exist", name)
			}
			ends[k] = i
		}
		if ends[0] == ends[1] || given[ends] {
			f.fail(x, "the route from %s to %s leads nowhere or is given twice", m.Devices[ends[0]].Name, m.Devices[ends[1]].Name)
		}
		given[ends] = true
		route := []int32{}
		for _, y := range f.elements(x.member("links")) {
			name := f.text(y)
			l, ok := link[name]
			if !ok {
				f.fail(y, "link %q does not exist", name)
			}
			if slices.Contains(route, l) {
				f.fail(y, "link %q occurs twice in the route", name)
			}
			route = append(route, l)
		}
		if f.err == nil {
			m.Routes[ends[0]*len(m.Devices)+ends[1]] = route
		}
	}
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

		Shared units.BytesPerSecond `json:"shared_memory_bandwidth,omitempty"`

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
			out.Models[d.Model] = model{d.Kind, d.Arch, capacity, capacity - d.Memory, d.MemoryBandwidth, d.Peak, d.Launch, d.GraphLaunch, d.SMs, d.L2, d.Source, d.SharedMemoryBandwidth, d.Calibration}
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
	if err := jsonx.Write(&buf, out); err != nil {
		return err
	}
	_, err := w.Write(buf.Bytes())
	return err
}
