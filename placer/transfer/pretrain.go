package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"placer/plan"
)

// PretrainConfig describes a pretraining run. It is stored in checkpoints; a run
// goes on only under the configuration that it began with.
type PretrainConfig struct {
	Policy Config `json:"policy"`
	// Families to draw graphs from; empty means all.
	Families []string `json:"families"`
	// HeldOut families stay out, and so do their kin.
	HeldOut []string `json:"held_out"`
	// Imitation steps come first: each learns the decisions of a search's plans on
	// Batch graphs.
	Imitation     int     `json:"imitation"`
	Batch         int     `json:"batch"`
	ImitationRate float64 `json:"imitation_rate"`
	// Steps of joint PPO follow: each samples one graph Samples times.
	Steps   int     `json:"steps"`
	Samples int     `json:"samples"`
	Epochs  int     `json:"epochs"`
	Rate    float64 `json:"rate"` // learning rate, falling linearly to a tenth
	Clip    float64 `json:"clip"`
	Entropy float64 `json:"entropy"`
	// Prior weighs the divergence from what the guides advise.
	Prior float64 `json:"prior"`
	// Pool is the number of graphs of a family that are in use at a time; a new one
	// takes the place of the oldest every Renew steps.
	Pool     int    `json:"pool"`
	Renew    int    `json:"renew"`
	MostRows int    `json:"most_rows"` // decisions times devices of a graph
	Seed     uint64 `json:"seed"`
}

// DefaultPretrain returns the configuration of the policies in experiments.
func DefaultPretrain() PretrainConfig {
	return PretrainConfig{
		Policy: DefaultConfig(), Imitation: 60, Batch: 4, ImitationRate: 1e-3,
		Steps: 5000, Samples: 16, Epochs: 2, Rate: 1e-3, Clip: 0.2, Prior: 0.02,
		Pool: 16, Renew: 40, MostRows: 2400, Seed: 1,
	}
}

// Validate reports every fault.
func (c PretrainConfig) Validate() error {
	var errs []error
	if _, err := c.training(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, c.Policy.Validate())
	if c.Imitation < 0 || c.Steps < 0 || c.Imitation+c.Steps == 0 {
		errs = append(errs, fmt.Errorf("pretrain: %d steps of imitation and %d of PPO, want some", c.Imitation, c.Steps))
	}
	if c.Batch < 1 || c.Samples < 2 || c.Epochs < 1 || c.Pool < 1 || c.Renew < 1 || c.MostRows < 1 {
		errs = append(errs, fmt.Errorf("pretrain: batch %d, epochs %d, pool %d, renew %d and rows %d must be at least 1 and samples %d at least 2", c.Batch, c.Epochs, c.Pool, c.Renew, c.MostRows, c.Samples))
	}
	if !(c.ImitationRate > 0) || !(c.Rate > 0) || !(c.Clip > 0) || !(c.Entropy >= 0) || !(c.Prior >= 0) {
		errs = append(errs, fmt.Errorf("pretrain: learning rates %g and %g and clip %g must be positive, entropy %g and prior %g not negative", c.ImitationRate, c.Rate, c.Clip, c.Entropy, c.Prior))
	}
	return errors.Join(errs...)
}

// training returns the families that graphs are drawn from.
func (c PretrainConfig) training() ([]Family, error) {
	left, err := Training(c.HeldOut)
	if err != nil || len(c.Families) == 0 {
		return left, err
	}
	var chosen []Family
	for _, f := range Families() {
		for _, name := range c.Families {
			if f.Name == name {
				chosen = append(chosen, f)
			}
		}
	}
	if len(chosen) != len(c.Families) {
		return nil, fmt.Errorf("pretrain: families %v, want some of %v", c.Families, familyNames(Families()))
	}
	var both []Family
	for _, f := range chosen {
		for _, g := range left {
			if f.Name == g.Name {
				both = append(both, f)
			}
		}
	}
	if len(both) == 0 {
		return nil, fmt.Errorf("pretrain: no family is left to train on")
	}
	return both, nil
}

func familyNames(fs []Family) (names []string) {
	for _, f := range fs {
		names = append(names, f.Name)
	}
	return names
}

// Host is what a pretraining run uses of its surroundings.
type Host struct {
	// Expert places what rewards are relative to.
	Expert plan.Placer
	// Teacher places what is imitated, within TeacherBudget.
	Teacher       plan.Placer
	TeacherBudget plan.Budget
	// Recall and Remember keep a teacher's decisions between runs; either may be
	// nil. The key names all that they depend on.
	Recall   func(key string) []int32
	Remember func(key string, decisions []int32) error
	// Share, if not nil, returns the share of a budget in time that is used up; the
	// run ends at 1. The steps it ends after depend on the clock then.
	Share func() float64
	// Report is told of every step.
	Report func(Progress) error
	// Save is called when a checkpoint is due, every Every steps and at the end.
	Save  func(*Checkpoint) error
	Every int
}

// Progress is one step of pretraining.
type Progress struct {
	Step    int
	Case    Case // the last of the step
	Family  string
	Imitate bool
	// Of imitation: cross entropy, share of units decided as the teacher did, by
	// weight, and the share of the best answer that is the same for all units of a
	// segment.
	Loss, Accuracy, Constant float64
	// Of PPO: time over the expert's of the mean and of the best sample, mean
	// entropy of a decision, share of clipped decisions.
	Outcome
}

// pretraining is a run under way.
type pretraining struct {
	c        PretrainConfig
	host     Host
	families []Family
	trainer  *Trainer
	step     int
	lessons  map[lessonKey]*lesson
	known    map[lessonKey]bool
	graphs   []noticed // those of known, in the order of their first use
	samples  int
}

type lessonKey struct {
	family string
	index  int
}

// stream returns the random stream of one purpose.
func stream(seed uint64, purpose string, number uint64) *rand.Rand {
	h := sha256.Sum256(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, seed), number))
	k := sha256.Sum256(append(h[:], purpose...))
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(k[:]), binary.LittleEndian.Uint64(k[8:])))
}

// Pretrain trains a policy on many graphs: first it imitates a search's plans,
// then it improves by PPO on -sqrt(time/expert's time), standardised per graph.
// Every step draws from a stream of its own, so a run that goes on from its
// checkpoint ends with the weights of the uninterrupted run. When ctx ends, it
// saves and returns ctx's error.
func Pretrain(ctx context.Context, c PretrainConfig, from *Checkpoint, host Host) (*Policy, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	families, err := c.training()
	if err != nil {
		return nil, err
	}
	t := &pretraining{c: c, host: host, families: families, lessons: map[lessonKey]*lesson{}, known: map[lessonKey]bool{}}
	if err := t.open(from); err != nil {
		return nil, err
	}
	for t.step < c.Imitation+c.Steps && (host.Share == nil || host.Share() < 1) {
		p, err := t.advance(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil, errors.Join(t.save(), context.Cause(ctx))
			}
			return nil, err
		}
		if host.Report != nil {
			if err := host.Report(p); err != nil {
				return nil, err
			}
		}
		if host.Every > 0 && t.step%host.Every == 0 {
			if err := t.save(); err != nil {
				return nil, err
			}
		}
	}
	return t.finished(), t.save()
}

// finished returns the policy with what there is to say of its training.
func (t *pretraining) finished() *Policy {
	p := t.trainer.Policy
	p.Card = Card{Trained: familyNames(t.families), HeldOut: t.c.HeldOut, Steps: t.step, Samples: t.samples, Graphs: len(t.graphs)}
	p.Reach = reachOf(t.graphs)
	return p
}

// open begins a run or takes one up.
func (t *pretraining) open(from *Checkpoint) error {
	p, err := NewPolicy(t.c.Policy, stream(t.c.Seed, "weights", 0))
	if err != nil {
		return err
	}
	t.trainer = NewTrainer(p, nil)
	if from == nil {
		return nil
	}
	return from.restore(t)
}

// left returns the share of the run that is to come.
func (t *pretraining) left() float64 {
	done := float64(t.step-t.c.Imitation) / float64(max(1, t.c.Steps))
	if t.host.Share != nil {
		done = max(done, t.host.Share())
	}
	return 1 - min(1, max(0, done))
}

// advance takes one step. Steps that fail leave the weights as they were.
func (t *pretraining) advance(ctx context.Context) (Progress, error) {
	random := stream(t.c.Seed, "step", uint64(t.step))
	t.trainer.random = random
	p := Progress{Step: t.step, Imitate: t.step < t.c.Imitation}
	t.forget()
	if p.Imitate {
		for range t.c.Batch {
			l, f, c, err := t.choose(ctx, random)
			if err == nil && l.teacher == nil {
				err = t.teach(ctx, l, f, c)
			}
			if err != nil {
				t.trainer.Policy.net.params.ZeroGrad()
				return p, err
			}
			k := random.IntN(len(levels))
			loss, accuracy, constant := t.trainer.Imitate(l.scenes[k], l.scenes[k].Labels(l.teacher))
			p.Loss += loss / float64(t.c.Batch)
			p.Accuracy += accuracy / float64(t.c.Batch)
			p.Constant += constant / float64(t.c.Batch)
			p.Case, p.Family = c, f.Name
		}
		if err := t.trainer.Step(t.c.ImitationRate); err != nil {
			return p, err
		}
		t.step++
		return p, nil
	}
	l, f, c, err := t.choose(ctx, random)
	if err != nil {
		return p, err
	}
	p.Case, p.Family = c, f.Name
	p.Outcome, err = t.trainer.Reinforce(l.scenes[random.IntN(len(levels))], t.c.Samples, t.c.Epochs, l.baseline, objective{t.c.Clip, t.c.Entropy, t.c.Prior}, t.c.Rate*(0.1+0.9*t.left()))
	t.samples += t.c.Samples
	t.step++
	return p, err
}

// choose draws a lesson: a family, then one of its graphs in use.
func (t *pretraining) choose(ctx context.Context, random *rand.Rand) (*lesson, Family, Case, error) {
	f := t.families[random.IntN(len(t.families))]
	index := t.step/(t.c.Renew*len(t.families)) + random.IntN(t.c.Pool)
	if t.step < t.c.Imitation {
		index = random.IntN(t.c.Pool)
	}
	key := lessonKey{f.Name, index}
	if l := t.lessons[key]; l != nil {
		return l, f, l.of, nil
	}
	l, c, err := t.lessonOf(ctx, f, index)
	if err != nil {
		return nil, f, c, err
	}
	l.of = c
	t.lessons[key] = l
	if !t.known[key] {
		t.known[key] = true
		t.graphs = append(t.graphs, noticed{f.Name, index, l.scenes[0].summary()})
	}
	return l, f, c, nil
}

// forget drops the lessons that are no longer in use.
func (t *pretraining) forget() {
	for key := range t.lessons {
		if key.index < t.step/(t.c.Renew*len(t.families)) && t.step >= t.c.Imitation {
			delete(t.lessons, key)
		}
	}
}

// teach asks the teacher what to decide on l. What is kept between runs are its
// decisions on cells.
func (t *pretraining) teach(ctx context.Context, l *lesson, f Family, c Case) error {
	key := fmt.Sprintf("%s %s %d %g %d", c.Workload, c.GPU, c.Devices, c.Bandwidth, t.host.TeacherBudget.Evaluations)
	cells := l.scenes[0].part
	if t.host.Recall != nil {
		if d := t.host.Recall(key); len(d) == cells.NumUnits() {
			l.teacher = make([]uint8, len(cells.Of))
			for i, u := range cells.Of {
				l.teacher[i] = uint8(d[u])
			}
			return nil
		}
	}
	p := *l.scenes[0].problem
	p.Budget = t.host.TeacherBudget
	o, err := t.host.Teacher.Place(ctx, &p)
	if err == nil {
		err = ctx.Err() // a teacher that was stopped has not given its best
	}
	if err != nil {
		return err
	}
	d := l.scenes[0].Labels(o.Device)
	l.teacher = make([]uint8, len(cells.Of))
	for i, u := range cells.Of {
		l.teacher[i] = uint8(d[u])
	}
	if t.host.Remember != nil {
		return t.host.Remember(key, d)
	}
	return nil
}

func (t *pretraining) save() error {
	if t.host.Save == nil {
		return nil
	}
	return t.host.Save(t.checkpoint())
}
