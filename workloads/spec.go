package workloads

import (
	"fmt"
	"strings"

	"placer/graph"
	"placer/internal/spell"
)

// Spec describes a workload by name.
type Spec struct {
	Name string
	// GPUs is the number of devices the papers use it with; 0 where they do not.
	GPUs int
	// PublishedOps is the op count the papers give; 0 where they give none.
	PublishedOps int
	model        model
}

// List returns every named workload, families together, small before large.
func List() []Spec {
	return []Spec{
		{"rnnlm2", 2, 9021, newRNNLM(2)}, {"rnnlm4", 4, 0, newRNNLM(4)}, {"rnnlm8", 8, 0, newRNNLM(8)},
		{"gnmt2", 2, 28044, newGNMT(2)}, {"gnmt4", 4, 46600, newGNMT(4)}, {"gnmt8", 8, 83712, newGNMT(8)},
		{"trfxl2", 2, 2618, newTransformerXL(2)}, {"trfxl4", 4, 0, newTransformerXL(4)}, {"trfxl8", 8, 0, newTransformerXL(8)},
		{"inception", 2, 0, newInception(32)}, {"inception64", 2, 24713, newInception(64)}, {"amoebanet", 4, 9430, newAmoebaNet()},
		{"wavenet2", 2, 0, newWaveNet(2)}, {"wavenet4", 4, 0, newWaveNet(4)}, {"wavenet5", 0, 4374, newWaveNet(5)}, {"wavenet10", 0, 8516, newWaveNet(10)},
		{"llama", 0, 0, newLlama()}, {"llama70b", 0, 0, newLlama70B()}, {"moe", 0, 0, newMoE()}, {"vit", 0, 0, newViT()}, {"vitl", 0, 0, newViTL()},
	}
}

// Lookup returns the workload of that name in List, or of the textual form of a
// family ("rnnlm:layers=3,unroll=20"): what the text does not set keeps the value of
// the family's smallest workload. The error names the faulty part, or close names.
func Lookup(name string) (Spec, error) {
	if strings.Contains(name, ":") {
		m, err := parse(name)
		return Spec{Name: name, model: m}, err
	}
	var names []string
	for _, s := range List() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Spec{}, fmt.Errorf("unknown workload %q, %s", name, suggest(name, names))
}

// Build returns the training graph of a name that Lookup knows.
func Build(name string) (*graph.Graph, error) {
	s, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	return build(s.model, name)
}

// BuildBatch is Build with so many samples a step.
func BuildBatch(name string, batch int64) (*graph.Graph, error) {
	s, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	s.model.base().batch = batch
	return build(s.model, name)
}

// CheckBatch reports why a step of a name that Lookup knows cannot have so many samples.
func CheckBatch(name string, batch int64) error {
	s, err := Lookup(name)
	if err != nil {
		return err
	}
	s.model.base().batch = batch
	return validate(s.model)
}

// Batch returns how many samples a step of a name that Lookup knows has: images, or
// sequences.
func Batch(name string) (int64, error) {
	s, err := Lookup(name)
	if err != nil {
		return 0, err
	}
	return s.model.base().batch, nil
}

// suggest says which of names are near name, or all of them when none is.
func suggest(name string, names []string) string {
	if near := spell.Near(name, names); len(near) > 0 {
		return "did you mean " + strings.Join(near, ", ") + "?"
	}
	return "want one of " + strings.Join(names, ", ")
}
