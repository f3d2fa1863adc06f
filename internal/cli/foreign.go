package cli

import (
	"strings"

	"placer/graph/dnnpart"
	"placer/graph/doppler"
	"placer/graph/pipedream"
	"placer/graph/piper"
	"placer/internal/foreign"
)

// isForeign reports whether data is in a form that carries op times of its own.
func isForeign(data []byte) bool {
	if startsJSON(data) {
		return dnnpart.Sniff(data) || piper.Sniff(data)
	}
	return pipedream.Sniff(data) || doppler.Sniff(data)
}

// bringsMachine reports whether the graph file at path carries op times and a
// machine of its own.
func bringsMachine(path string) (bool, error) {
	head, err := firstBytes(path)
	if err != nil || !startsJSON(head) && !strings.HasSuffix(path, ".json") && !startsText(head) {
		return false, err
	}
	data, err := foreign.ReadFile(path)
	return err == nil && isForeign(data), err
}

// importForeign reads what isForeign has recognised.
func importForeign(data []byte, name string) (l loaded, err error) {
	switch {
	case startsJSON(data) && dnnpart.Sniff(data):
		if l.instance, err = dnnpart.Import(data, name); err == nil {
			l.Graph, l.times = l.instance.Graph, l.instance.Times
		}
	case startsJSON(data):
		x, err := piper.Import(data, name)
		if err != nil {
			return l, err
		}
		l.Graph, l.times = x.Graph, x.Times
	case pipedream.Sniff(data):
		if l.profile, err = pipedream.Import(data, name); err == nil {
			l.Graph, l.times = l.profile.Graph, l.profile.Times
		}
	default:
		x, err := doppler.Import(data, name)
		if err != nil {
			return l, err
		}
		l.Graph, l.times = x.Graph, x.Times
	}
	return l, err
}
