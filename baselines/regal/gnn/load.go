package gnn

import (
	"embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"placer/internal/fsx"
	"placer/nn"
	"placer/nn/safetensors"
)

// Keys of a file's metadata.
const (
	configKey   = "config" // as JSON
	stepKey     = "step"
	imitatedKey = "imitated" // steps of imitation among them
)

// file returns the weights of p, and the optimiser's state if adam is not nil.
func (p *Policy) file(adam *nn.Adam) *safetensors.File {
	config, err := json.Marshal(p.config)
	if err != nil {
		panic("gnn: " + err.Error()) // numbers and truth values alone
	}
	return nn.Checkpoint(p.params, adam, map[string]string{configKey: string(config)})
}

// Trained is a policy with how it came about.
type Trained struct {
	Name            string
	Policy          *Policy
	Imitated, Steps int // steps of training, and those that imitated Teach among them
}

// Likeliest reports whether the policy proposes its likeliest actions.
func (t Trained) Likeliest() bool { return t.Policy.config.Likeliest }

// Load returns the policy in a file that Trainer.Weights or Trainer.Checkpoint
// gave, under a name. It claims no memory for weights that the file does not have.
func Load(name string, f *safetensors.File, b *nn.Backend) (Trained, error) {
	t := Trained{Name: name}
	var c Config
	if err := json.Unmarshal([]byte(f.Metadata[configKey]), &c); err != nil {
		return t, fmt.Errorf("gnn: configuration of the weights: %w", err)
	}
	if err := c.validate(); err != nil {
		return t, err
	}
	for _, x := range []struct {
		key string
		to  *int
	}{{imitatedKey, &t.Imitated}, {stepKey, &t.Steps}} {
		s, ok := f.Metadata[x.key]
		if !ok { // weights of another program's making
			continue
		}
		var err error
		if *x.to, err = strconv.Atoi(s); err != nil {
			return t, fmt.Errorf("gnn: %s of the weights: %w", x.key, err)
		}
	}
	random := rand.New(rand.NewPCG(0, 0)) // every weight is overwritten below
	if err := nn.Fits(f, func(ps *nn.Params) { build(c, ps, b, random) }); err != nil {
		return t, fmt.Errorf("gnn: %w", err)
	}
	t.Policy = build(c, nn.NewParams(), b, random)
	return t, nn.Restore(f, t.Policy.params, nil)
}

// trained are the weights that come with the program, compressed, files by a policy's name
// with dashes for spaces; experiments/regal/train.sh trained them.
//
//go:embed trained
var trained embed.FS

// mostTrained is the most that one of them may be, in bytes.
const mostTrained = 16 << 20

// BuiltIn returns the policies for synthetic graphs, run time and two devices that
// come with the program, REGAL's row first.
func BuiltIn(b *nn.Backend) ([]Trained, error) {
	var all []Trained
	for _, name := range []string{"warm start", "no warm start", "8 rounds"} {
		packed, err := trained.ReadFile("trained/" + strings.ReplaceAll(name, " ", "-") + ".safetensors.gz")
		if err != nil {
			return nil, fmt.Errorf("gnn: %w", err)
		}
		data, err := fsx.Expand(packed, "gnn: "+name, mostTrained)
		if err != nil {
			return nil, err
		}
		f, err := safetensors.Read(data)
		if err != nil {
			return nil, fmt.Errorf("gnn: %s: %w", name, err)
		}
		t, err := Load(name, f, b)
		if err != nil {
			return nil, fmt.Errorf("gnn: %s: %w", name, err)
		}
		all = append(all, t)
	}
	return all, nil
}
