package formats

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"placer/graph"
	"placer/graph/formats/tensorflow"
	"placer/hw"
	"placer/internal/words"
	"placer/plan"
)

// Target is a program that takes a placement of modules.
type Target struct {
	Name string
	Doc  string // what it takes
	// Lost says what of a plan the form has no place for.
	Lost string
	// Stages says that a device has contiguous parts, in the order of the accelerators.
	Stages bool
	// Host says that the first layers may be on the CPU instead, and of others the experts.
	Host bool
	// Output says that what is behind the layers may be on the accelerator behind the last layer's.
	Output bool
	// Ops says that it places single ops, where others place modules.
	Ops bool
	// Compiles says that XLA compiles what a device has, and fuses it.
	Compiles bool

	write func(w io.Writer, s *Split) error
	sniff func(data []byte) bool
	read  func(data []byte, s *Split) error // sets s.Device
}

// Split is a placement of the parts of a graph.
type Split struct {
	Graph   *graph.Graph
	Machine *hw.Machine
	Parts   *Parts
	Device  []uint8 // of each part
	// Tensors are the devices of Parts.Tensors; nil: each is with the part that reads it.
	Tensors []uint8
	// Experts are the devices of the weights of each part's experts, for a target that may
	// have them on another than their part; nil: it has none there.
	Experts []uint8
	// Sent says that what computes with experts on the host runs on the first accelerator, to
	// which their weights are sent; otherwise it runs where the weights are.
	Sent bool
}

// Targets lists the targets.
func Targets() []Target {
	return []Target{
		{Name: "accelerate", Doc: "a device_map by paths of modules and of parameters beside modules, as JSON", Lost: "order; a block is on one device", write: writeDeviceMap, sniff: isDeviceMap, read: readDeviceMap},
		{Name: "jax", Doc: "a device by module path, as JSON, for jax.device_put of parameters and activations", Lost: "order; a block is on one device", Compiles: true, write: writeJAX, sniff: isJAX, read: readJAX},
		{Name: "vllm", Doc: "VLLM_PP_LAYER_PARTITION and the command line", Lost: "order; contiguous layers; the embedding is with the first, the head with the last", Stages: true, write: writeVLLM, sniff: isVLLM, read: readVLLM},
		{Name: "llama.cpp", Doc: "the options -ngl, -ts, -sm layer and -ot", Lost: "order; contiguous layers on GPUs behind those on the CPU; a layer's experts are together", Stages: true, Host: true, Output: true, write: writeLlama, sniff: isLlama, read: readLlama},
		{Name: "torch-pipelining", Doc: "split_spec of torch.distributed.pipelining, as JSON", Lost: "order; contiguous modules", Stages: true, write: writePipelining, sniff: isPipelining, read: readPipelining},
		{Name: "deepspeed", Doc: "the bounds of the stages in a list of layers, as JSON", Lost: "order; contiguous modules", Stages: true, write: writeDeepSpeed, sniff: isDeepSpeed, read: readDeepSpeed},
	}
}

// Find returns the target of that name.
func Find(name string) (Target, error) {
	var names []string
	for _, t := range Targets() {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return Target{}, fmt.Errorf("unknown target %q, want one of %s", name, strings.Join(names, ", "))
}

// Write writes s. A target of stages takes only what Legal accepts.
func (t *Target) Write(w io.Writer, s *Split) error {
	if err := t.Legal(s); err != nil {
		return err
	}
	return t.write(w, s)
}

// Legal reports why t cannot take s; nil where it can.
func (t *Target) Legal(s *Split) error {
	if !t.Stages {
		return t.legalMap(s)
	}
	if err := t.legalExperts(s); err != nil {
		return err
	}
	if s.Parts.Layers() == 0 && (t.Name == "vllm" || t.Name == "llama.cpp") {
		return fmt.Errorf("%s places the layers of a stack of blocks, and the graph has none", t.Name)
	}
	stage, err := s.stages(t.Host)
	if err != nil {
		return err
	}
	if order := s.Machine.Accelerators(); t.Host && stage[len(stage)-1] > 0 && s.Machine.Devices[order[0]].Kind != hw.GPU {
		return fmt.Errorf("%s is on %s, and %s has one CPU alone", s.Parts.List[len(stage)-1].Path, s.Machine.Devices[s.Device[len(stage)-1]].Name, t.Name)
	}
	if t.Name == "vllm" || t.Name == "llama.cpp" {
		first, behind := s.Parts.firstLayer(), stage[s.Parts.lastLayer()]
		if t.Output {
			behind = stage[len(stage)-1]
		}
		for k, x := range s.Parts.List { // what is around the stack goes with its ends
			if x.Layer >= 0 {
				continue
			}
			if k < first && stage[k] != stage[first] || k > first && stage[k] != behind {
				return fmt.Errorf("%s is not on the device of the layer beside it", x.Path)
			}
		}
	}
	return nil
}

func (p *Parts) firstLayer() int {
	return slices.IndexFunc(p.List, func(x Part) bool { return x.Layer == 0 })
}

func (p *Parts) lastLayer() int {
	last := p.Layers() - 1
	return slices.IndexFunc(p.List, func(x Part) bool { return x.Layer == last })
}

// stages returns the stage of each part, from 0, or why there are none: the devices
// must follow the order of the accelerators, without a gap. With host, the first may be on
// the host, which is stage -1.
func (s *Split) stages(host bool) ([]int, error) {
	order := s.Machine.Accelerators()
	stage := make([]int, len(s.Device))
	cpu := -1
	if host {
		cpu = s.Machine.Host()
	}
	at := -1
	for k, d := range s.Device {
		i := slices.Index(order, d)
		switch {
		case at < 0 && int(d) == cpu:
		case i < 0:
			return nil, fmt.Errorf("%s is on %s, which is no accelerator", s.Parts.List[k].Path, s.Machine.Devices[d].Name)
		case i != at && i != at+1:
			return nil, fmt.Errorf("%s is on %s, out of the order of stages", s.Parts.List[k].Path, s.Machine.Devices[d].Name)
		}
		at = i
		stage[k] = at
	}
	return stage, nil
}

// fromStages sets the devices from the first part of each stage, ascending from 0.
func (s *Split) fromStages(bounds []int) error {
	order := s.Machine.Accelerators()
	if len(bounds) > len(order) {
		return fmt.Errorf("%s, machine %s has %s", words.Count(len(bounds), "stage", "stages"), s.Machine.Name, words.Count(len(order), "accelerator", "accelerators"))
	}
	s.Device = make([]uint8, len(s.Parts.List))
	for k := range s.Device {
		stage := 0
		for i, b := range bounds {
			if k >= b {
				stage = i
			}
		}
		s.Device[k] = order[stage]
	}
	return nil
}

// IsPlan reports whether data is placer's own plan.
func IsPlan(data []byte) bool {
	return strings.Contains(string(data[:min(len(data), 1<<12)]), `"`+plan.Format+`"`)
}

// Read reads a placement for g on m in any of the targets' forms, or placer's own plan;
// name is the file's, for errors. The result passes Check.
func Read(data []byte, name string, g *graph.Graph, m *hw.Machine) (*plan.Plan, error) {
	if !IsPlan(data) && tensorflow.Sniff(data) {
		return readGraphDef(data, name, g, m)
	}
	if !IsPlan(data) && isONNXStages(data) {
		return readONNXStages(data, name, g, m)
	}
	for _, t := range Targets() {
		if IsPlan(data) || !t.sniff(data) {
			continue
		}
		parts, err := FindParts(g)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s := &Split{Graph: g, Machine: m, Parts: parts}
		if err := t.read(data, s); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", name, t.Name, err)
		}
		p := &plan.Plan{Graph: g.Hash(), Machine: m.Name, Method: t.Name, Decision: plan.Decision{Device: s.Spread()}}
		if err := p.Check(g, m); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return p, nil
	}
	f, err := plan.Read(strings.NewReader(string(data)), name)
	if err != nil {
		return nil, err
	}
	p, err := f.Plan(g, m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// IsTarget returns the target whose form data is in.
func IsTarget(data []byte) (Target, bool) {
	if IsPlan(data) {
		return Target{}, false
	}
	if tensorflow.Sniff(data) {
		return Target{Name: "graphdef"}, true
	}
	if isONNXStages(data) {
		return Target{Name: "onnx"}, true
	}
	for _, t := range Targets() {
		if t.sniff(data) {
			return t, true
		}
	}
	return Target{}, false
}
