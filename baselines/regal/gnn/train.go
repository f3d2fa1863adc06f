package gnn

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"sync"

	"placer/baselines/regal/brkga"
	"placer/baselines/regal/propose"
	"placer/baselines/regal/sched"
	"placer/internal/faults"
	"placer/internal/parallel"
	"placer/nn"
	"placer/nn/safetensors"
)

// Training says how to train.
type Training struct {
	Imitate        int // first steps, which imitate Teach; 0: REINFORCE alone
	Batch          int // graphs in a step
	Keep           int // visits of a graph in a row that share its features
	Samples        int // K, of a graph in a step; with 1 the advantage is that over b(G)
	Evaluations    int // of a search that rewards a sample
	LearningRate   float64
	ImitationRate  float64 // learning rate while imitating
	BaselineWeight float64 // of (b(G) - reward)²
	Entropy        float64
	ClipNorm       float64
	Objective      sched.Objective
	Workers        int // searches at once; results do not depend on it
}

// paper returns the numbers of A.14 to A.16: 4 graphs, one sample each, 1,000
// evaluations for a reward.
func paper() Training {
	return Training{Batch: 4, Keep: 1, Samples: 1, Evaluations: 1000, LearningRate: 1e-4, ImitationRate: 3e-3, BaselineWeight: 1e-4, ClipNorm: 10, Workers: 1}
}

// Short returns numbers for minutes instead of days: four samples of each graph,
// whose advantage is that over the others' mean, and larger learning rates.
func Short() Training {
	t := paper()
	t.Samples, t.LearningRate, t.Entropy = 4, 1e-3, 1e-3
	return t
}

// Validate reports every fault of t.
func (t Training) Validate() error {
	var all faults.List
	all.If(t.Imitate < 0 || t.Batch < 1 || t.Keep < 1 || t.Samples < 1 || t.Evaluations < 1 || t.Workers < 1, "gnn: %d steps of imitation, %d graphs, features kept %d times, %d samples, %d evaluations, %d workers", t.Imitate, t.Batch, t.Keep, t.Samples, t.Evaluations, t.Workers)
	all.If(!(t.LearningRate > 0) || !(t.ImitationRate > 0) || !(t.BaselineWeight >= 0) || !(t.Entropy >= 0) || !(t.ClipNorm >= 0), "gnn: learning rates %g and %g, baseline %g, entropy %g, clip %g", t.LearningRate, t.ImitationRate, t.BaselineWeight, t.Entropy, t.ClipNorm)
	return errors.Join(all...)
}

// Step is a state of a training.
type Step struct {
	Step         int // that has ended, from 1
	Imitating    bool
	Loss         float64
	Reward       float64 // mean of -cost / cost with uniform distributions; 0 while imitating
	Baseline     float64 // mean b(G)
	GradientNorm float64 // before clipping
}

// Trainer trains a policy. Graphs and random numbers of a step follow from the
// seed and the step's number, so a training that is resumed from a checkpoint
// goes on as if it had not stopped.
type Trainer struct {
	policy *Policy
	config Training
	graph  func(k int) (*sched.Problem, error)
	graphs int
	seed   uint64
	adam   *nn.Adam
	steps  int
	cost   map[int]float64 // with uniform distributions, by graph
	mu     sync.Mutex
	read   map[int]reading // by graph; guarded by mu
}

// reading is a graph with the features that its visits share from one on.
type reading struct {
	since int // that visit, counted over all graphs
	graph *multigraph
}

// NewTrainer returns a trainer of p on graph(0) to graph(graphs-1), which is
// called from several goroutines. It panics if t is not valid.
func NewTrainer(p *Policy, t Training, graphs int, graph func(k int) (*sched.Problem, error), seed uint64) *Trainer {
	if err := t.Validate(); err != nil || graphs < 1 {
		panic(fmt.Sprintf("gnn: %d graphs, %v", graphs, err))
	}
	adam := nn.DefaultAdam()
	adam.ClipNorm = t.ClipNorm
	return &Trainer{policy: p, config: t, graph: graph, graphs: graphs, seed: seed, adam: nn.NewAdam(adam), cost: map[int]float64{}, read: map[int]reading{}}
}

// Steps returns how many steps have been made.
func (t *Trainer) Steps() int { return t.steps }

// Checkpoint returns weights, optimiser and step, as Load and Restore read them.
func (t *Trainer) Checkpoint() *safetensors.File {
	f := t.policy.file(t.adam)
	f.Metadata[stepKey] = strconv.Itoa(t.steps)
	f.Metadata[imitatedKey] = strconv.Itoa(min(t.steps, t.config.Imitate))
	return f
}

// Weights returns the weights alone, as Load reads them.
func (t *Trainer) Weights() *safetensors.File {
	f := t.policy.file(nil)
	f.Metadata = t.Checkpoint().Metadata
	return f
}

// Restore continues from f.
func (t *Trainer) Restore(f *safetensors.File) error {
	n, err := strconv.Atoi(f.Metadata[stepKey])
	if err != nil || n < 0 {
		return fmt.Errorf("checkpoint: step %q", f.Metadata[stepKey])
	}
	if err := nn.Restore(f, t.policy.params, t.adam); err != nil {
		return err
	}
	t.steps = n
	return nil
}

// job is a graph of a step.
type job struct {
	problem *sched.Problem
	graph   *multigraph
	samples []sample
	cost    []float64
	uniform float64
	lesson  []uint8
}

// Streams of random numbers of a step; those of samples come behind.
const (
	streamFeatures = iota
	streamActions
	streamUniform
	streamSamples
)

func (t *Trainer) stream(step, graph, purpose int) *rand.Rand {
	return rand.New(rand.NewPCG(t.seed^bits.RotateLeft64(uint64(purpose), 56), uint64(step)<<32|uint64(graph)))
}

// Step makes one step. When ctx ends it returns ctx's error, and nothing has
// changed.
func (t *Trainer) Step(ctx context.Context) (Step, error) {
	s := Step{Step: t.steps + 1, Imitating: t.steps < t.config.Imitate}
	jobs := make([]job, t.config.Batch)
	numbers := make([]int, len(jobs))
	errs := make([]error, len(jobs))
	t.each(len(jobs), func(i int) {
		j := &jobs[i]
		numbers[i] = (t.steps*t.config.Batch + i) % t.graphs
		if j.problem, errs[i] = t.graph(numbers[i]); errs[i] != nil {
			return
		}
		j.graph = t.features(ctx, j.problem, numbers[i], i)
		if s.Imitating {
			j.lesson = teach(j.problem, j.graph, t.policy.config.Actions)
		}
	})
	if err := errors.Join(errs...); err != nil {
		return s, err
	}
	if ctx.Err() != nil {
		return s, ctx.Err()
	}
	if !s.Imitating {
		if err := t.reward(ctx, jobs, numbers, &s); err != nil {
			return s, err
		}
	}
	if ctx.Err() != nil {
		return s, ctx.Err()
	}
	if err := t.learn(jobs, &s); err != nil {
		return s, err
	}
	t.steps++
	return s, nil
}

// features returns graph number k, which is visited now for the i-th of a step,
// with its features.
func (t *Trainer) features(ctx context.Context, p *sched.Problem, k, i int) *multigraph {
	round := (t.steps*t.config.Batch + i) / t.graphs
	since := (round-round%t.config.Keep)*t.graphs + k
	t.mu.Lock()
	x, ok := t.read[k]
	t.mu.Unlock()
	if ok && x.since == since {
		return x.graph
	}
	batch := t.config.Batch
	x = reading{since, readGraph(ctx, p, t.config.Objective, t.stream(since/batch, since%batch, streamFeatures))}
	if t.config.Keep > 1 && ctx.Err() == nil {
		t.mu.Lock()
		t.read[k] = x
		t.mu.Unlock()
	}
	return x.graph
}

// each calls do(0) to do(n-1) on the workers.
func (t *Trainer) each(n int, do func(i int)) {
	next := make(chan int)
	var wait parallel.Group
	for range min(n, t.config.Workers) {
		wait.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wait.Wait()
}

// reward draws the samples of all jobs and runs their searches.
func (t *Trainer) reward(ctx context.Context, jobs []job, numbers []int, s *Step) error {
	p, k := t.policy, t.config.Samples
	if err := p.draw(jobs, k, func(i int) *rand.Rand { return t.stream(t.steps, i, streamActions) }); err != nil {
		return err
	}
	for i := range jobs {
		jobs[i].cost = make([]float64, k)
		jobs[i].uniform = t.cost[numbers[i]]
	}
	search := brkga.Default()
	search.OneGeneration = t.config.Evaluations <= search.Chromosomes // the same, without room for a population
	// Search 0 of a job is that with uniform distributions.
	t.each(len(jobs)*(k+1), func(x int) {
		j, i := &jobs[x/(k+1)], x%(k+1)
		e := sched.NewEvaluator(j.problem, t.config.Objective)
		budget := brkga.Budget{Evaluations: t.config.Evaluations}
		if i == 0 {
			if j.uniform == 0 {
				j.uniform = brkga.Run(ctx, e, brkga.Uniform{}, search, budget, t.stream(0, numbers[x/(k+1)], streamUniform)).Cost
			}
			return
		}
		q := p.proposal(j.samples[i-1], j.graph.pin)
		c := search
		if q.EliteBias != 0 {
			c.EliteBias = q.EliteBias
		}
		e.Pin(q.Pin)
		j.cost[i-1] = brkga.Run(ctx, e, q.Distributions, c, budget, t.stream(t.steps, x/(k+1), streamSamples+i)).Cost
	})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for i := range jobs {
		t.cost[numbers[i]] = jobs[i].uniform
		for _, c := range jobs[i].cost {
			s.Reward -= c / jobs[i].uniform / float64(k*len(jobs))
		}
	}
	return nil
}

// draw samples k times from the policy for each job.
func (p *Policy) draw(jobs []job, k int, stream func(i int) *rand.Rand) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range jobs {
		g := jobs[i].graph
		c, err := p.compile(g, true)
		if err != nil {
			return err
		}
		if _, err := c.graph.Run(nil); err != nil {
			return err
		}
		r := stream(i)
		chances := p.chances(c, g.ops.N, false)
		for range k {
			s, err := chances.draw(r)
			if err != nil {
				return err
			}
			jobs[i].samples = append(jobs[i].samples, s)
		}
	}
	return nil
}

// learn adds the gradients of all jobs and moves the weights.
func (t *Trainer) learn(jobs []job, s *Step) (err error) {
	p := t.policy
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range jobs {
		c, err := p.compile(jobs[i].graph, true)
		if err != nil {
			return err
		}
		l := &loss{job: &jobs[i], policy: p, training: t.config, share: 1 / float64(len(jobs))}
		x, err := c.graph.Run(l)
		if err != nil {
			return err
		}
		s.Loss += x
		s.Baseline += l.baseline / float64(len(jobs))
	}
	rate := t.config.LearningRate
	if s.Imitating {
		rate = t.config.ImitationRate
	}
	s.GradientNorm, err = t.adam.Step(p.params, rate)
	return err
}

// loss is that of one job.
type loss struct {
	job      *job
	policy   *Policy
	training Training
	share    float64 // of the job in the step
	baseline float64 // b(G), set by Loss
}

// Loss is as nn.Objective says.
func (l *loss) Loss(c *nn.Context, outputs, gradients []nn.Mat) (sum float64) {
	j := l.job
	reinforce := &propose.Reinforce{Space: l.policy.config.Actions, Ops: j.graph.ops.N, Entropy: l.training.Entropy * l.share}
	b := float64(outputs[1].V[0])
	l.baseline = b
	if j.lesson != nil {
		reinforce.Decisions, reinforce.Advantage, reinforce.Entropy = [][]uint8{j.lesson}, []float64{l.share}, 0
		return reinforce.Loss(c, outputs[:1], gradients[:1])
	}
	mean := 0.0
	for _, x := range j.cost {
		mean -= x / j.uniform / float64(len(j.cost))
	}
	for i, x := range j.cost {
		advantage := -x/j.uniform - b
		if k := float64(len(j.cost)); k > 1 {
			advantage = (-x/j.uniform - mean) * k / (k - 1)
		}
		advantage *= l.share
		reinforce.Advantage = append(reinforce.Advantage, advantage)
		reinforce.Decisions = append(reinforce.Decisions, j.samples[i].decisions)
		if k := l.policy.config.Crossover; k > 0 {
			sum += choose(outputs[2].Row(0), gradients[2].Row(0), j.samples[i].crossover, advantage/float64(len(j.cost)))
		}
	}
	weight := l.training.BaselineWeight * l.share
	gradients[1].V[0] += float32(2 * weight * (b - mean))
	return sum + weight*(b-mean)*(b-mean) + reinforce.Loss(c, outputs[:1], gradients[:1])
}

// choose adds the gradient of -advantage log p(chosen) to dx and returns it.
func choose(x, dx []float32, chosen int, advantage float64) float64 {
	p := make([]float64, len(x))
	norm := nn.SoftmaxRow(p, x)
	for k := range dx {
		dx[k] += float32(advantage * p[k])
	}
	dx[chosen] -= float32(advantage)
	return -advantage * (float64(x[chosen]) - norm)
}
