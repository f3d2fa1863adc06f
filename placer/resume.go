package placer

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"

	"placer/features"
	"placer/gonet"
	"placer/nn"
	"placer/plan"
)

// Names of what a checkpoint of a policy says beside the network.
const (
	policyKey   = "policy"   // its configuration
	featuresKey = "features" // version of the network's input
	roundsKey   = "rounds"
	positionKey = "training"
)

// position is where the training of a policy stands.
type position struct {
	Spent      float64 `json:"spent"`      // share of the budget
	Curriculum int     `json:"curriculum"` // under way; the number of them: the best one goes on
	Stage      int     `json:"stage"`      // of the curriculum
	// Round is the best that the curriculum has sampled, Best what the best of those
	// that have ended had, Chosen that one, -1 before there is one.
	Round  *plan.Score `json:"round,omitempty"`
	Chosen int         `json:"chosen"`
	Best   plan.Score  `json:"best"`
}

// Resume makes the Place calls to come go on with a training that was cut off when
// it had come to earlier, and whose last Save wrote path; empty, or if it cannot be
// taken up, which is a note of the outcome, training starts anew, with earlier as
// its best. It is for budgets in seconds: of what was left of the whole.
func (p *Policy) Resume(earlier *plan.Outcome, path string) { p.earlier, p.path = earlier, path }

// begin seeds run with the outcome to resume with and takes up the checkpoint.
func (p *Policy) begin(run *training, backend *nn.Backend) (notes []string) {
	o, n, tasks := p.earlier, run.problem.Graph.NumOps(), run.env.tasks
	if o == nil || len(o.Device) != n || tasks.Has(plan.Schedule) && len(o.Priority) != n || tasks.Has(plan.Fuse) && len(o.Fusion) != n {
		return nil
	}
	run.best, run.score = run.env.newDraft(n), o.Score
	copy(run.best.device, o.Device)
	if tasks.Has(plan.Schedule) {
		copy(run.best.priority, o.Priority)
	}
	if tasks.Has(plan.Fuse) {
		copy(run.best.fusion, o.Fusion)
	}
	if p.path == "" {
		return nil
	}
	if err := p.load(run, backend); err != nil {
		return []string{fmt.Sprintf("its training is not taken up, it starts anew: %v", err)}
	}
	return nil
}

// load reads the checkpoint.
func (p *Policy) load(run *training, backend *nn.Backend) error {
	f, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer f.Close()
	network, extra, err := gonet.Load(f, backend)
	if err != nil {
		return fmt.Errorf("%s: %w", p.path, err)
	}
	config, err := json.Marshal(p.config)
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	var at position
	switch {
	case extra[policyKey] != string(config):
		return fmt.Errorf("%s: of a policy of another configuration", p.path)
	case extra[featuresKey] != fmt.Sprint(features.Version):
		return fmt.Errorf("%s: features of version %s, want %d", p.path, extra[featuresKey], features.Version)
	case extra[positionKey] == "":
		return fmt.Errorf("%s: does not say how far the training was", p.path)
	}
	if err := json.Unmarshal([]byte(extra[positionKey]), &at); err != nil {
		return fmt.Errorf("%s: %s: %w", p.path, positionKey, err)
	}
	if !(at.Spent >= 0 && at.Spent <= 1) || at.Curriculum < 0 || at.Stage < 0 {
		return fmt.Errorf("%s: %s: %s is no place in a training", p.path, positionKey, extra[positionKey])
	}
	rounds, err := strconv.Atoi(extra[roundsKey])
	if err != nil || rounds < 0 {
		return fmt.Errorf("%s: %s: %q rounds", p.path, roundsKey, extra[roundsKey])
	}
	p.network, p.rounds, p.at = network, rounds, at
	run.from, run.resumed = at.Spent, &at
	return nil
}

// take reports whether the network and its free logits are what training on batch
// goes on with: those of a checkpoint, on its first batch. If they are not for
// such a batch, the network is forgotten.
func (p *Policy) take(run *training, c PolicyConfig, s stage, batch *gonet.Batch) bool {
	if run.resumed == nil {
		return false
	}
	run.resumed = nil
	fits := p.network.Config() == c.network(batch.X.D, run.env.decoder)
	if fits && c.FreeLogits {
		for i, f := range p.network.AddFree(s.name, batch.X.N) {
			fits = fits && slices.Equal(f.Shape, []int{batch.X.N, p.network.Config().Decision.Tasks()[i].Columns()})
		}
	}
	if !fits {
		p.network = nil
		run.notes = append(run.notes, fmt.Sprintf("the network in %s is not for these units, it starts anew", p.path))
	}
	return fits
}
