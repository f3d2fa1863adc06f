package sequential

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"placer/placer/corpus"
	"placer/placer/corpus/families"
	"placer/plan"
)

// Host is what a pretraining run uses of its surroundings.
type Host struct {
	// Expert places what rewards are relative to.
	Expert plan.Placer
	// Teacher places what is imitated, within TeacherBudget.
	Teacher       plan.Placer
	TeacherBudget plan.Budget
	// Problems, if there are any, are trained on in place of drawn ones, and their
	// plans imitated in place of the teacher's.
	Problems []corpus.Problem
	// Recall and Remember keep a teacher's decisions between runs; either may be
	// nil. The key names all that they depend on.
	Recall   func(key string) []int32
	Remember func(key string, decisions []int32) error
	// Share, if not nil, returns the share of a budget in time that is used up; the
	// run ends at 1. The steps it ends after depend on the clock then.
	Share func() float64
	// Report, if not nil, is told of every step.
	Report func(Progress) error
	// Save, if not nil, is called when a checkpoint is due, every Every steps and at
	// the end.
	Save  func(*Checkpoint) error
	Every int
}

// Progress is one step of pretraining.
type Progress struct {
	Step        int  // from 0
	Case        Case // the last of the step
	How         Learning
	imitation   // of a step of Imitation
	improvement // of any other
}

// Learning is what a step of pretraining learns by.
type Learning string

// Ways to learn, in the order of a run, which has one of the two for placements.
const (
	Imitation     Learning = "imitation"
	PPO           Learning = "PPO"
	SelfLabelling Learning = "self-labelling"
	OfTasks       Learning = "schedule and fusion"
)

// how returns what step t.step learns by.
func (t *pretraining) how() Learning {
	switch {
	case t.step < t.c.Imitation:
		return Imitation
	case t.step >= t.c.Imitation+t.c.Steps:
		return OfTasks
	case t.c.Alike > 0:
		return SelfLabelling
	}
	return PPO
}

// Pretrain trains a policy on many graphs. First it imitates a search's plans. Then it improves
// its placements: by self-labelling where c.Alike is above 0, else by PPO (arXiv:1707.06347) on
// -sqrt(time/expert's time), over the mean of rollouts by the same prior (see advantages). Last
// it improves schedule and fusion, where it has an encoder, and tries its proposals.
// Every step draws from a stream of its own, so a run that goes on from its checkpoint from
// ends with the weights of the uninterrupted run; from may be nil. When ctx ends, it saves and
// returns ctx's cause.
func Pretrain(ctx context.Context, c PretrainConfig, from *Checkpoint, host Host) (*Policy, error) {
	t, err := newPretraining(c, from)
	if err != nil {
		return nil, err
	}
	t.host = host
	if got := corpus.Fingerprint(host.Problems); got != c.Corpus {
		return nil, fmt.Errorf("pretrain: the configuration is for the problems %q, not for %q", c.Corpus, got)
	}
	if from != nil && from.Teacher != 0 && from.Teacher != t.teacher() {
		return nil, fmt.Errorf("checkpoint: its run imitates a search of %d evaluations, not of %d", from.Teacher, t.teacher())
	}
	for t.step < c.Total() && (host.Share == nil || host.Share() < 1) {
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
	if err := t.save(); err != nil {
		return nil, err
	}
	p := t.policy()
	p.tried, err = t.try(ctx, p)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return p, err
}

// pretraining is a run under way.
type pretraining struct {
	c        PretrainConfig
	host     Host
	families []families.Family
	trainer  *trainer
	draws    int // mostDraws
	step     int
	samples  int
	examples map[exampleKey]*example
	known    map[exampleKey]bool
	graphs   []trainingGraph // those of known, in the order of their first use
}

// newPretraining begins a run, or takes one up from a checkpoint that is not nil.
func newPretraining(c PretrainConfig, from *Checkpoint) (*pretraining, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	sources, err := c.sources()
	if err != nil {
		return nil, err
	}
	p, err := NewPolicy(c.Policy, stream(c.Seed, "weights", 0))
	if err != nil {
		return nil, err
	}
	t := &pretraining{c: c, families: sources, trainer: newTrainer(p, nil), draws: mostDraws, examples: map[exampleKey]*example{}, known: map[exampleKey]bool{}}
	if from == nil {
		return t, nil
	}
	return t, from.restore(t)
}

// policy returns the policy with what there is to say of its training.
func (t *pretraining) policy() *Policy {
	p := t.trainer.policy
	p.Card = Card{Trained: families.Names(t.families), HeldOut: t.c.HeldOut, Steps: t.step, Samples: t.samples, Graphs: len(t.graphs)}
	p.training = distributionOf(t.graphs)
	return p
}

// left returns the share of the run that is to come.
func (t *pretraining) left() float64 {
	done := float64(t.step-t.c.Imitation) / float64(max(1, t.c.Steps))
	if t.step >= t.c.Imitation+t.c.Steps {
		done = float64(t.step-t.c.Imitation-t.c.Steps) / float64(max(1, t.c.TaskSteps))
	}
	if t.host.Share != nil {
		done = max(done, t.host.Share())
	}
	return 1 - min(1, max(0, done))
}

// advance takes one step. Steps that fail leave the weights as they were, and so does one
// in which ctx ends before it has sampled: what it then learns, it learns to the end.
func (t *pretraining) advance(ctx context.Context) (Progress, error) {
	if err := ctx.Err(); err != nil {
		return Progress{}, err
	}
	random := stream(t.c.Seed, "step", uint64(t.step))
	t.trainer.random = random
	p := Progress{Step: t.step, How: t.how()}
	t.forget()
	train := t.improve
	if p.How == Imitation {
		train = t.imitate
	}
	if err := train(ctx, &p, random); err != nil {
		return p, err
	}
	t.step++
	return p, nil
}

// imitate takes a step of imitation.
func (t *pretraining) imitate(ctx context.Context, p *Progress, random *rand.Rand) error {
	n := float64(t.c.Batch)
	for range t.c.Batch {
		x, err := t.choose(ctx, random)
		if err == nil {
			err = t.teach(ctx, x)
		}
		if err != nil {
			t.trainer.policy.net.params.ZeroGrad()
			return err
		}
		s := x.instance(level(random.IntN(len(levels))))
		r := t.trainer.imitate(s, s.labels(x.teacher))
		p.Loss += r.Loss / n
		p.Accuracy += r.Accuracy / n
		p.Constant += r.Constant / n
		p.Case = x.of
	}
	return t.trainer.step(t.c.ImitationRate)
}

// improve takes a step of any other.
func (t *pretraining) improve(ctx context.Context, p *Progress, random *rand.Rand) error {
	x, err := t.choose(ctx, random)
	if err != nil {
		return err
	}
	p.Case = x.of
	improve := t.trainer.ppo
	switch p.How {
	case SelfLabelling:
		improve = t.trainer.selfLabel
	case OfTasks:
		improve = t.trainer.reinforceTasks
	}
	p.improvement, err = improve(ctx, lesson{x.instance(level(random.IntN(len(levels)))), x.expert}, &t.c, t.c.Rate*(0.1+0.9*t.left()))
	if err == nil {
		t.samples += t.c.Samples
	}
	return err
}

// choose draws an example: of a corpus any, else of a family one of its graphs in use.
func (t *pretraining) choose(ctx context.Context, random *rand.Rand) (*example, error) {
	if n := len(t.host.Problems); n > 0 {
		x := &t.host.Problems[random.IntN(n)]
		return t.example(exampleKey{x.Families[0], x.Index}, func() (*example, error) { return t.fromCorpus(ctx, x) })
	}
	f := t.families[random.IntN(len(t.families))]
	index := t.oldest() + random.IntN(t.c.Pool)
	if t.step < t.c.Imitation {
		index = random.IntN(t.c.Pool) // drawn twice: the recorded policies were trained so
	}
	return t.example(exampleKey{f.Name, index}, func() (*example, error) { return t.newExample(ctx, f, index) })
}

// example returns that of key, which build builds unless it is in use.
func (t *pretraining) example(key exampleKey, build func() (*example, error)) (*example, error) {
	if x := t.examples[key]; x != nil {
		return x, nil
	}
	x, err := build()
	if err != nil {
		return nil, err
	}
	t.examples[key] = x
	if !t.known[key] {
		t.known[key] = true
		t.graphs = append(t.graphs, trainingGraph{key.family, key.index, x.instance(atCells).summary()})
	}
	return x, nil
}

// oldest returns the number of a family's oldest graph in use.
func (t *pretraining) oldest() int {
	if t.step < t.c.Imitation {
		return 0
	}
	return t.step / (t.c.Renew * len(t.families))
}

// mostExamples is how many problems of a corpus are kept built.
const mostExamples = 64

// forget drops the examples that are no longer in use.
func (t *pretraining) forget() {
	if len(t.host.Problems) > 0 {
		if len(t.examples) > mostExamples {
			clear(t.examples)
		}
		return
	}
	for key := range t.examples {
		if key.index < t.oldest() {
			delete(t.examples, key)
		}
	}
}

func (t *pretraining) save() error {
	if t.host.Save == nil {
		return nil
	}
	return t.host.Save(t.checkpoint())
}
