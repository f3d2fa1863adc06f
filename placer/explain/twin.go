package explain

import (
	"slices"

	"placer/hw"
)

// twinning adds to a machine a device like one that it has.
type twinning struct {
	was *hw.Machine
	now *hw.Machine
	of  int             // the model
	own map[int32]int32 // the twin's link for a link of the model's own
}

// twin returns m with another device like its last GPU (its last device, where it has
// none), and the name of that: the links of the new device are its own, each like that
// of its model; between the two they are like those between it and the first other
// device.
func twin(m *hw.Machine) (*hw.Machine, string) {
	d := len(m.Devices)
	n := *m
	n.Devices, n.Links = slices.Clone(m.Devices), slices.Clone(m.Links)
	n.Routes = make([][]int32, 0, (d+1)*(d+1))
	x := &twinning{was: m, now: &n, of: d - 1, own: map[int32]int32{}}
	for k := range m.Devices {
		if m.Devices[k].Kind == hw.GPU {
			x.of = k
		}
	}
	v := m.Devices[x.of]
	v.Name += " twin"
	n.Devices = append(n.Devices, v)
	for s := range d + 1 {
		for t := range d + 1 {
			n.Routes = append(n.Routes, x.route(s, t))
		}
	}
	return &n, m.Devices[x.of].Name
}

// route returns the links from device s to t, of which the twin is the last.
func (x *twinning) route(s, t int) []int32 {
	m, twin := x.was, len(x.was.Devices)
	switch {
	case s == t:
		return nil
	case s < twin && t < twin:
		return m.Route(s, t)
	case s == twin && t != x.of:
		route := m.Route(x.of, t)
		return x.copied(route, len(route)-1)
	case t == twin && s != x.of:
		return x.copied(m.Route(s, x.of), 0)
	case s == twin:
		return x.pair("twin>" + m.Devices[x.of].Name)
	}
	return x.pair(m.Devices[x.of].Name + ">twin")
}

// copied returns the twin's route for one of its model: the links that the model alone is
// at the end of are copied, shared ones stay shared. far is the place of the link at the
// other device's end of the route.
func (x *twinning) copied(route []int32, far int) []int32 {
	r := slices.Clone(route)
	for k, l := range r {
		if !exclusive(x.was, l, x.of) || k == far && len(r) > 1 {
			continue
		}
		to, ok := x.own[l]
		if !ok {
			to = int32(len(x.now.Links))
			x.own[l] = to
			link := x.was.Links[l]
			link.Name += " twin"
			x.now.Links = append(x.now.Links, link)
		}
		r[k] = to
	}
	return r
}

// exclusive reports whether link l is used by routes from or to device d alone.
func exclusive(m *hw.Machine, l int32, d int) bool {
	for s := range m.Devices {
		for t := range m.Devices {
			if s != d && t != d && slices.Contains(m.Route(s, t), l) {
				return false
			}
		}
	}
	return true
}

// pair adds a link of that name between the model and its twin, like that to another
// device, one of the model's kind if there is any, and returns the route.
func (x *twinning) pair(name string) []int32 {
	m, of := x.was, x.of
	l := hw.Link{Name: name, Bandwidth: 10e9, Latency: 1e-5, Source: "assumed: a machine of one device has no links"}
	other := slices.IndexFunc(m.Devices, func(e hw.Device) bool { return e.Name != m.Devices[of].Name && e.Kind == m.Devices[of].Kind })
	if other < 0 && len(m.Devices) > 1 {
		other = (of + 1) % len(m.Devices)
	}
	if other >= 0 {
		l.Latency, l.Bandwidth = m.Transfer(of, other)
		l.EndCosts = m.EndCosts(of, other)
	}
	x.now.Links = append(x.now.Links, l)
	return []int32{int32(len(x.now.Links) - 1)}
}
