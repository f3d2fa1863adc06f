package pipedream

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"placer/graph"
	"placer/graph/formats/foreign"
	"placer/graph/formats/times"
	"placer/units"
)

// Instance is a profile's graph and its times.
type Instance struct {
	*times.Instance
	// Layer is the profile's layer of each op, [N], and Backward whether it is the
	// layer's backward op.
	Layer    []int
	Backward []bool
	Layers   []Layer
}

// Layer is one line of a profile.
type Layer struct {
	ID, Description   string
	Forward, Backward float64 // seconds
	Activation        float64 // bytes
	Parameters        float64 // bytes
	Stage             int     // -1 where the profile names none
	Inputs            []int   // layers
	sizes             string  // as the file has it
}

// The machine of a profile is not in it; these stand in until one is named.
const (
	Devices   = 4
	memory    = units.Bytes(16) << 30
	bandwidth = 16e9 // PCIe 3.0 x16, bytes a second
)

const (
	maxLayers       = 1 << 20
	maxMilliseconds = 1e12
	separator       = " -- "
)

// Sniff reports whether data looks like a profile: its first line has fields
// between dashes.
func Sniff(data []byte) bool {
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		if len(bytes.TrimSpace(line)) > 0 {
			return bytes.Contains(line, []byte(separator)) && !bytes.ContainsRune(line, 0)
		}
		data = rest
	}
	return false
}

// Import reads a profile. name is the file's name, for errors and for the graph.
func Import(data []byte, name string) (*Instance, error) {
	layers, err := parse(string(data))
	if err == nil {
		var x *Instance
		if x, err = instance(layers, foreign.GraphName(name)); err == nil {
			return x, nil
		}
	}
	return nil, fmt.Errorf("%s: %w", name, err)
}

// parse reads layers and edges, which may come in any order.
func parse(text string) ([]Layer, error) {
	var layers []Layer
	at := map[string]int{}
	type edge struct {
		from, to string
		line     int
	}
	var edges []edge
	k := 0
	for line := range strings.Lines(text) {
		k++
		line = strings.TrimRight(line, "\r\n")
		fields := strings.Split(strings.TrimSpace(line), separator)
		switch {
		case strings.TrimSpace(line) == "":
		case strings.HasPrefix(line, "\t"):
			if len(fields) != 2 {
				return nil, fmt.Errorf("line %d: %.40q, want an edge: source -- destination", k, line)
			}
			edges = append(edges, edge{fields[0], fields[1], k})
		default:
			l, err := layer(fields)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", k, err)
			}
			if _, twice := at[l.ID]; twice {
				return nil, fmt.Errorf("line %d: layer %s occurs twice", k, l.ID)
			}
			if len(layers) == maxLayers {
				return nil, fmt.Errorf("line %d: more than %d layers", k, maxLayers)
			}
			at[l.ID] = len(layers)
			layers = append(layers, l)
		}
	}
	if len(layers) == 0 {
		return nil, fmt.Errorf("line %d: the profile has no layer", k)
	}
	for _, e := range edges {
		u, ok1 := at[e.from]
		v, ok2 := at[e.to]
		if !ok1 || !ok2 {
			return nil, fmt.Errorf("line %d: edge from %.20q to %.20q: no such layer", e.line, e.from, e.to)
		}
		layers[v].Inputs = append(layers[v].Inputs, u)
	}
	return layers, nil
}

// layer reads id, description, figures and, if there, the stage.
func layer(fields []string) (l Layer, err error) {
	if len(fields) != 3 && len(fields) != 4 {
		return l, fmt.Errorf("%d fields between dashes, want id, description, figures and perhaps stage_id", len(fields))
	}
	l = Layer{ID: fields[0], Description: fields[1], Stage: -1}
	if l.ID == "" {
		return l, fmt.Errorf("the layer's id is empty")
	}
	for _, item := range strings.Split(fields[2], ", ") {
		key, value, _ := strings.Cut(item, "=")
		var to *float64
		scale := 1.0
		switch key {
		case "forward_compute_time":
			to, scale = &l.Forward, 1e-3
		case "backward_compute_time":
			to, scale = &l.Backward, 1e-3
		case "activation_size":
			to, l.sizes = &l.Activation, value
		case "parameter_size":
			to = &l.Parameters
		default:
			return l, fmt.Errorf("layer %s: unknown figure %.40q", l.ID, key)
		}
		for _, word := range strings.Split(strings.Trim(value, "[]"), ";") {
			x, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
			if err != nil || !(x >= 0) || x > maxMilliseconds*1e3 {
				return l, fmt.Errorf("layer %s: %s is %.40q, want a number from 0", l.ID, key, value)
			}
			*to += x * scale
		}
	}
	if len(fields) == 4 {
		value, ok := strings.CutPrefix(fields[3], "stage_id=")
		if l.Stage, err = strconv.Atoi(value); !ok || err != nil || l.Stage < 0 {
			return l, fmt.Errorf("layer %s: %.40q, want stage_id=NUMBER", l.ID, fields[3])
		}
	}
	if strings.HasPrefix(l.Description, "Input") {
		l.Forward, l.Backward = 0, 0
	}
	return l, nil
}

func instance(layers []Layer, name string) (*Instance, error) {
	training := false
	readers := make([][]int, len(layers))
	for i := range layers {
		training = training || layers[i].Backward > 0
		for _, u := range layers[i].Inputs {
			readers[u] = append(readers[u], i)
		}
	}
	b := graph.NewBuilder(name)
	n := len(layers)
	m := times.Model{Name: "profiled", Count: Devices, Memory: memory}
	for i := range layers {
		l := &layers[i]
		op := graph.Op{Name: l.ID, Kind: "Layer", Resident: units.Bytes(math.Round(l.Parameters)), Forward: graph.None}
		if training {
			op.Group = int32(i + 1)
		}
		var in []graph.TensorID
		for _, u := range l.Inputs {
			in = append(in, graph.TensorID(u)) // one output each: tensor u is layer u's
		}
		m.Seconds = append(m.Seconds, l.Forward)
		b.Op(op, in, graph.Tensor{Bytes: units.Bytes(math.Round(l.Activation))})
	}
	for i := 0; training && i < n; i++ {
		l := &layers[i]
		op := graph.Op{Name: l.ID + ":backward", Kind: "LayerGrad", Phase: graph.Backward, Group: int32(i + 1), Forward: graph.OpID(i)}
		in := []graph.TensorID{graph.TensorID(i)}
		for _, v := range readers[i] {
			in = append(in, graph.TensorID(n+v))
		}
		// The gradient of the input is as large as the input.
		var gradient float64
		for _, u := range l.Inputs {
			gradient += layers[u].Activation
		}
		m.Seconds = append(m.Seconds, l.Backward)
		b.Op(op, in, graph.Tensor{Bytes: units.Bytes(math.Round(gradient))})
	}
	y, err := times.Build(b, times.Table{Source: name, Models: []times.Model{m}, Bandwidth: bandwidth})
	if err != nil {
		return nil, err
	}
	x := &Instance{Instance: y, Layers: layers}
	for _, i := range b.Order() {
		x.Layer, x.Backward = append(x.Layer, int(i)%n), append(x.Backward, int(i) >= n)
	}
	return x, nil
}
