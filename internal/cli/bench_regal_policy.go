package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"placer/baselines/regal/gnn"
	"placer/baselines/regal/rivals"
	"placer/nn"
	"placer/nn/safetensors"
	"placer/report"
)

// regalProposers adds REGAL's rows: those of the weights asked for, or for the
// synthetic task those that come with the program, and the rule that a warm start
// imitates.
func (c *console) regalProposers(f *regalFlags, doc *report.Regal, o *rivals.Options) error {
	if slices.Equal(f.regal, []string{"none"}) {
		return nil
	}
	backend, err := nn.NewBackend(nn.Default())
	if err != nil {
		return err
	}
	var all []gnn.Trained
	for _, file := range f.regal {
		x, err := readREGAL(file, backend)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, x)
	}
	if len(f.regal) == 0 && f.task == string(rivals.Synthetic) && f.devices == 2 {
		if all, err = gnn.BuiltIn(backend); err != nil {
			return err
		}
	}
	warm := false
	for i, x := range all {
		note := fmt.Sprintf("trained by %d steps of REINFORCE", x.Steps-x.Imitated)
		if x.Imitated > 0 {
			note = fmt.Sprintf("trained by %d steps that imitate a rule of ours, then %d of REINFORCE", x.Imitated, x.Steps-x.Imitated)
			warm = true
		}
		if x.Likeliest() {
			note += "; takes its likeliest actions"
		}
		name := "REGAL"
		if i == 0 {
			o.REGAL = x.Policy
		} else {
			name += ", " + x.Name
			o.Others = append(o.Others, rivals.Proposer{Name: name, Proposer: x.Policy})
		}
		doc.Notes = append(doc.Notes, fmt.Sprintf("%s (%s): %s.", name, x.Name, note))
	}
	if warm && f.task == string(rivals.Synthetic) && f.devices == 2 {
		o.Others = append(o.Others, rivals.Proposer{Name: "rule alone", Proposer: gnn.Rule{Actions: all[0].Policy.Config().Actions}})
	}
	return nil
}

// readREGAL returns the policy whose weights are in file.
func readREGAL(file string, b *nn.Backend) (gnn.Trained, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return gnn.Trained{}, err
	}
	f, err := safetensors.Read(data)
	if err != nil {
		return gnn.Trained{}, err
	}
	return gnn.Load(strings.TrimSuffix(filepath.Base(file), ".safetensors"), f, b)
}
