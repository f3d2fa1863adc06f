package workloads

import (
	"fmt"
	"strings"
)

// family is a textual form: its name, and the settings to start from.
type family struct {
	name  string
	model model
}

// families are the textual forms, in the order of List.
func families() []family {
	return []family{
		{"rnnlm", newRNNLM(2)}, {"gnmt", newGNMT(2)}, {"trfxl", newTransformerXL(2)}, {"inception", newInception(32)}, {"amoebanet", newAmoebaNet()},
		{"wavenet", newWaveNet(2)}, {"llama", newLlama()}, {"moe", newMoE()}, {"vit", newViT()},
		{"unet", newUNet()}, {"diffusion", newDiffusion()}, {"resnext", newResNeXt()}, {"densenet", newDenseNet()}, {"recurrent", newRecurrent()}, {"seq2seq", newSeq2Seq()},
		{"transformer", newTransformer()}, {"recommender", newRecommender()}, {"clip", newCLIP()}, {"gpt", newGPT()},
	}
}

// parse reads "family:key=value,key=value"; what is not named keeps the family's
// default, and the colon may be left out when nothing is named. The error names
// the faulty part.
func parse(text string) (model, error) {
	name, rest, _ := strings.Cut(text, ":")
	var names []string
	for _, f := range families() {
		if f.name == name {
			if err := set(f.model, rest); err != nil {
				return nil, fmt.Errorf("workload %q: %w", text, err)
			}
			return f.model, nil
		}
		names = append(names, f.name)
	}
	return nil, fmt.Errorf("workload %q: unknown family %q, %s", text, name, suggest(name, names))
}

// set changes m by "key=value,key=value".
func set(m model, text string) error {
	seen := map[string]bool{}
	for part := range strings.SplitSeq(text, ",") {
		if text == "" {
			break
		}
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return fmt.Errorf("%q is not of the form key=value", part)
		}
		if seen[key] {
			return fmt.Errorf("%s is set twice", key)
		}
		seen[key] = true
		s, err := find(m, key)
		if err != nil {
			return err
		}
		if err := s.set(value); err != nil {
			return fmt.Errorf("%s=%s: %w", key, value, err)
		}
	}
	return validate(m)
}

func find(m model, key string) (setting, error) {
	var names []string
	for _, s := range m.settings() {
		if s.name == key {
			return s, nil
		}
		names = append(names, s.name)
	}
	return setting{}, fmt.Errorf("unknown setting %q, %s", key, suggest(key, names))
}
