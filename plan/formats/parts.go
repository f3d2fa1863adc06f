package formats

import (
	"errors"
	"strconv"
	"strings"

	"placer/graph"
	"placer/hw"
)

// Parts are what a graph's modules can be placed as.
type Parts struct {
	List []Part
	Of   []int32 // [N] part of each op
	Role []Role  // [N] of each op; nil where the model has no experts
	// Tensors are the parameters and buffers that no part's module holds.
	Tensors []Tensor

	experts []bool // whether a part has experts; nil where none has
}

// Part is a block of the model, or a module outside of blocks. Parts stand in the order
// of their first forward op.
type Part struct {
	Path string
	// Layer is the number of the block among those of the model's stack of blocks, from
	// 0; -1 for other parts.
	Layer int
}

// Tensor is a parameter or a buffer of a module that has parts in it, such as the class token
// of a vision transformer. Its op is with what reads it.
type Tensor struct {
	Module, Path string // Path is the module's, a dot and the tensor's name
	Op           graph.OpID
}

// ErrNoModules says that a graph does not name the modules of its ops.
var ErrNoModules = errors.New("the graph names neither modules nor layers of its ops")

// FindParts returns the parts of g. Ops of no part's module (residual additions, the
// input) belong to the part of what they read first, or of what reads them. A graph that
// names layers but no modules has those as its parts.
func FindParts(g *graph.Graph) (*Parts, error) {
	n := g.NumOps()
	p := &Parts{Of: make([]int32, n)}
	paths := make([]string, n)
	named, layered := false, false
	for i := range n {
		o := g.Op(graph.OpID(i))
		paths[i] = blockOf(o.Module)
		named = named || paths[i] != ""
		layered = layered || o.Layer > 0
	}
	if !named {
		if !layered {
			return nil, ErrNoModules
		}
		for i := range n {
			if l := g.Op(graph.OpID(i)).Layer; l > 0 {
				paths[i] = "layers." + strconv.Itoa(int(l)-1)
			}
		}
	}
	container := dropContainers(paths)
	if named {
		p.Tensors = tensorsOf(g, container)
	}
	at := map[string]int32{}
	part := func(i int) {
		k, ok := at[paths[i]]
		if !ok {
			k = int32(len(p.List))
			at[paths[i]] = k
			p.List = append(p.List, Part{paths[i], -1})
		}
		p.Of[i] = k
	}
	for i := range n { // weights may all come first, in the order in which a program registers them
		p.Of[i] = -1
		if o := g.Op(graph.OpID(i)); paths[i] != "" && o.Phase == graph.Forward && computes(o) {
			part(i)
		}
	}
	for i := range n {
		if paths[i] != "" {
			part(i)
		}
	}
	p.fill(g)
	p.number()
	if p.Role = roles(g); p.Role != nil {
		p.experts = make([]bool, len(p.List))
		for i, r := range p.Role {
			p.experts[p.Of[i]] = p.experts[p.Of[i]] || r == ExpertWeights
		}
	}
	return p, nil
}

// computes reports whether o is no weight, constant or input.
func computes(o *graph.Op) bool {
	switch o.Kind.Class() {
	case graph.ClassVariable, graph.ClassConst, graph.ClassInput:
		return false
	}
	return true
}

// blockOf returns the path of the block that a module is in, or the module's own: PyTorch's
// blocks are numbered, layers.3, Flax's have a number in their names, layers_3.
func blockOf(module string) string {
	parts := strings.Split(module, ".")
	for _, numbered := range []func(string) bool{isNumber, endsInNumber} {
		for i, s := range parts {
			if i > 0 && numbered(s) {
				return strings.Join(parts[:i+1], ".")
			}
		}
	}
	return module
}

func isNumber(s string) bool {
	_, err := strconv.Atoi(s)
	return err == nil
}

func endsInNumber(s string) bool { return isNumber(s[strings.LastIndexByte(s, '_')+1:]) }

// dropContainers removes the paths that contain others, and returns these: a program that
// places modules places what is inside.
func dropContainers(paths []string) map[string]bool {
	container := map[string]bool{"": true}
	for _, p := range paths {
		for i := range len(p) {
			if p[i] == '.' {
				container[p[:i]] = true
			}
		}
	}
	for i := range paths {
		if container[paths[i]] {
			paths[i] = ""
		}
	}
	return container
}

// tensorsOf returns the parameters and buffers of containers: ops that hold weights and are
// called like a tensor of the container that they name as their module, or that they are
// named after. An optimizer's state of a parameter, called like it and a dot more, is none.
func tensorsOf(g *graph.Graph, container map[string]bool) (list []Tensor) {
	for i := range graph.OpID(g.NumOps()) {
		o := g.Op(i)
		if o.Kind.Class() != graph.ClassVariable || strings.ContainsAny(o.Name, "/:") {
			continue
		}
		if strings.ContainsRune(o.Name, '[') && o.Module == "" { // JAX's name of an argument, params['layer_0']['kernel'], or st[0].mu['a']
			list = append(list, Tensor{"", o.Name, i})
			continue
		}
		if o.Phase != graph.Forward {
			continue
		}
		module := o.Name[:max(strings.LastIndexByte(o.Name, '.'), 0)]
		if container[module] && (o.Module == module || o.Module == "") {
			list = append(list, Tensor{module, o.Name, i})
		}
	}
	return list
}

// fill gives ops without a part that of what they read or are read by.
func (p *Parts) fill(g *graph.Graph) {
	n := g.NumOps()
	for i := range n {
		if p.Of[i] >= 0 {
			continue
		}
		for _, t := range g.Inputs(graph.OpID(i)) { // the latest, as an addition after a block is the block's
			p.Of[i] = max(p.Of[i], p.Of[g.Tensor(t).Producer])
		}
	}
	for i := n - 1; i >= 0; i-- {
		first, end := g.Outputs(graph.OpID(i))
		for t := first; t < end && p.Of[i] < 0; t++ {
			for _, c := range g.Consumers(t) {
				if p.Of[i] < 0 {
					p.Of[i] = p.Of[c]
				}
			}
		}
	}
	for i := range n {
		p.Of[i] = max(p.Of[i], 0)
	}
}

// number numbers the blocks of the largest stack: the container with the most of them.
func (p *Parts) number() {
	stack, most := "", 0
	count := map[string]int{}
	for _, x := range p.List {
		if c, ok := container(x.Path); ok {
			if count[c]++; count[c] > most {
				stack, most = c, count[c]
			}
		}
	}
	layer := 0
	for i := range p.List {
		if c, ok := container(p.List[i].Path); ok && c == stack {
			p.List[i].Layer = layer
			layer++
		}
	}
}

// container returns the path that a block is in.
func container(path string) (string, bool) {
	at := strings.LastIndexByte(path, '.')
	if at < 0 || !endsInNumber(path[at+1:]) {
		return "", false
	}
	return path[:max(at, strings.LastIndexByte(path, '_'))], true
}

// Layers returns the number of blocks in the model's stack.
func (p *Parts) Layers() (n int) {
	for _, x := range p.List {
		n = max(n, x.Layer+1)
	}
	return n
}

// Spread returns the device of each op, [N], for the devices of the parts. Ops of a
// co-location group follow the first of them.
func (p *Parts) Spread(g *graph.Graph, device []uint8) []uint8 {
	return p.spread(g, func(i int) uint8 { return device[p.Of[i]] })
}

// spread is Spread where on gives the device of each op.
func (p *Parts) spread(g *graph.Graph, on func(i int) uint8) []uint8 {
	of := make([]uint8, len(p.Of))
	group := map[int32]uint8{}
	for i := range p.Of {
		of[i] = on(i)
		if c := g.Op(graph.OpID(i)).Group; c > 0 {
			if d, ok := group[c]; ok {
				of[i] = d
			} else {
				group[c] = of[i]
			}
		}
	}
	return of
}

// Majority returns, for each part, the device that runs most of it under a placement of
// the ops, [N], weighed by their seconds on device 0; seconds may be nil, for one an op.
func (p *Parts) Majority(device []uint8, seconds []float64) []uint8 {
	return p.majority(device, func(i int) float64 {
		if seconds == nil {
			return 1
		}
		return seconds[i]
	})
}

// majority is Majority by any weight of ops.
func (p *Parts) majority(device []uint8, weigh func(i int) float64) []uint8 {
	var weight [hw.MaxPlaced]float64
	of := make([]uint8, len(p.List))
	sums := make([][hw.MaxPlaced]float64, len(p.List))
	for i, k := range p.Of {
		sums[k][device[i]] += weigh(i)
	}
	for k := range sums {
		weight = sums[k]
		for d := range weight {
			if weight[d] > weight[of[k]] {
				of[k] = uint8(d)
			}
		}
	}
	return of
}
