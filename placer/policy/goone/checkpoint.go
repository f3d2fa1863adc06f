package goone

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"

	"placer/internal/fsx"
	"placer/nn/gonet"
	"placer/placer/policy/curriculum"
	"placer/placer/policy/features"
	"placer/plan"
)

// Names of what a checkpoint of a policy says beside the network.
const (
	policyKey   = "policy"   // its configuration
	featuresKey = "features" // version of the network's input
	roundsKey   = "rounds"
	positionKey = "training"
	drawnKey    = "identity" // Policy.drawn in base64; older checkpoints lack it
)

// Save writes the network, its optimiser, the configuration and how far the training
// is. Before Place has begun there is nothing to write.
func (p *Policy) Save(path string) error {
	if p.network == nil {
		return nil
	}
	c, err := json.Marshal(p.config)
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	at, err := json.Marshal(p.at)
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	extra := map[string]string{policyKey: string(c), featuresKey: fmt.Sprint(features.Version), roundsKey: fmt.Sprint(p.trained), positionKey: string(at), drawnKey: base64.StdEncoding.EncodeToString(p.drawn)}
	return fsx.WriteFile(path, func(w io.Writer) error { return p.network.Save(w, extra) })
}

// Resume makes the Place call to come go on with a training that was cut off when
// it had come to earlier, and whose last Save wrote path; empty, or if it cannot be
// taken up, which is a note of the outcome, training starts anew, with earlier as
// its best. It is for budgets in seconds: of what was left of the whole.
func (p *Policy) Resume(earlier *plan.Outcome, path string) { p.earlier, p.path = earlier, path }

// resume seeds the run with the outcome to resume with and takes up the checkpoint.
func (t *trainer) resume() (notes []string) {
	t.network, t.trained, t.drawn = nil, 0, nil
	if !t.run.Begin(t.earlier) || t.path == "" {
		return nil
	}
	if err := t.load(); err != nil {
		return []string{fmt.Sprintf("its training is not taken up, it starts anew: %v", err)}
	}
	return nil
}

// load reads the checkpoint.
func (t *trainer) load() error {
	f, err := os.Open(t.path)
	if err != nil {
		return err
	}
	defer f.Close()
	network, extra, err := gonet.Load(f, t.backend)
	if err != nil {
		return fmt.Errorf("%s: %w", t.path, err)
	}
	config, err := json.Marshal(t.config)
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	var at curriculum.Position
	switch {
	case extra[policyKey] != string(config):
		return fmt.Errorf("%s: of a policy of another configuration", t.path)
	case extra[featuresKey] != fmt.Sprint(features.Version):
		return fmt.Errorf("%s: features of version %s, want %d", t.path, extra[featuresKey], features.Version)
	case extra[positionKey] == "":
		return fmt.Errorf("%s: does not say how far the training was", t.path)
	}
	if err := json.Unmarshal([]byte(extra[positionKey]), &at); err != nil {
		return fmt.Errorf("%s: %s: %w", t.path, positionKey, err)
	}
	if !(at.Spent >= 0 && at.Spent <= 1) || at.Curriculum < 0 || at.Stage < 0 {
		return fmt.Errorf("%s: %s: %s is no place in a training", t.path, positionKey, extra[positionKey])
	}
	rounds, err := strconv.Atoi(extra[roundsKey])
	if err != nil || rounds < 0 {
		return fmt.Errorf("%s: %s: %q rounds", t.path, roundsKey, extra[roundsKey])
	}
	drawn, err := base64.StdEncoding.DecodeString(extra[drawnKey])
	if err == nil && len(drawn) > 0 {
		err = new(rand.PCG).UnmarshalBinary(drawn)
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %w", t.path, drawnKey, err)
	}
	t.network, t.trained, t.at, t.drawn = network, rounds, at, drawn
	t.run.Resumed, t.resumed = at.Spent, true
	return nil
}

// take reports whether the network and its instance's logits are what training on
// batch goes on with: those of a checkpoint, on its first batch. If they are not for
// such a batch, the network is forgotten.
func (t *trainer) take(batch *gonet.Batch, s curriculum.Stage) bool {
	if !t.resumed {
		return false
	}
	t.resumed = false
	fits := t.network.Config() == t.networkConfig(batch.X.D)
	if fits && t.config.InstanceRate > 0 {
		for i, f := range t.network.AddInstanceLogits(s.Name, batch.X.N) {
			fits = fits && slices.Equal(f.Shape, []int{batch.X.N, t.network.Config().Decision.Tasks()[i].Columns()})
		}
	}
	if !fits {
		t.network = nil
		t.notes = append(t.notes, fmt.Sprintf("the network in %s is not for these units, it starts anew", t.path))
	}
	return fits
}
