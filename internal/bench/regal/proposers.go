package regal

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"placer/baselines/regal/gnn"
	"placer/baselines/regal/rivals"
	"placer/internal/report"
	"placer/nn"
)

// none in place of weights leaves the policies out.
const none = "none"

// proposers adds REGAL's rows to o: those of the weights asked for, or for the
// synthetic task those that come with the program, and the rule that a warm start
// imitates.
func (c *Config) proposers(doc *report.Regal, o *rivals.Options) error {
	if slices.Equal(c.REGAL, []string{none}) {
		return nil
	}
	backend, err := nn.NewBackend(nn.Default())
	if err != nil {
		return err
	}
	var all []gnn.Trained
	for _, file := range c.REGAL {
		f, err := readTensors(file)
		if err != nil {
			return err
		}
		x, err := gnn.Load(strings.TrimSuffix(filepath.Base(file), ".safetensors"), f, backend)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, x)
	}
	ours := c.synthetic() && c.Devices == 2 // what the program's own weights and the rule are for
	if len(c.REGAL) == 0 && ours {
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
	if warm && ours {
		o.Others = append(o.Others, rivals.Proposer{Name: "rule alone", Proposer: gnn.Rule{Actions: all[0].Policy.Config().Actions}})
	}
	return nil
}
