package placer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"placer/features"
	"placer/gonet"
	"placer/graph/unit"
	"placer/graphsage"
	"placer/internal/fsx"
	"placer/nn"
	"placer/plan"
	"placer/ppo"
	"placer/transformerxl"
)

// Policy is GO-one: a policy network trained from scratch by PPO on the graph
// that it plans for, with nothing but sampled plans and their times to learn from
// (GO, section 4; GDP, section 3.4). It decides the tasks of the problem, jointly.
type Policy struct {
	config  PolicyConfig
	network *gonet.Network // nil until Place begins
	rounds  int
	device  nn.Device
	near    bool // stay near the placement that the problem has
}

// NewPolicy returns an untrained policy.
func NewPolicy(c PolicyConfig) (*Policy, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Policy{config: c}, nil
}

// Use makes the network of the Place calls to come run on d, nil for the CPU.
func (p *Policy) Use(d nn.Device) { p.device = d }

// Name is as plan.Placer says.
func (p *Policy) Name() string { return "GO-one" }

// Kind is as plan.Placer says.
func (p *Policy) Kind() plan.Kind { return plan.Policy }

// Place trains until the budget is spent and returns the best placement that was
// sampled.
func (p *Policy) Place(ctx context.Context, problem *plan.Problem) (*plan.Outcome, error) {
	c := p.config
	if d := problem.Machine.NumDevices(); d > c.Devices {
		c.Devices = d
	}
	c = c.forTasks(problem)
	c.Training.Samples = fitSamples(c.Training, problem.Budget.Evaluations)
	env := newEnvironment(problem, c)
	if !env.tasks.Has(plan.Place) && len(problem.Device) != problem.Graph.NumOps() {
		return nil, fmt.Errorf("policy: %v without a placement of the %d ops", env.tasks, problem.Graph.NumOps())
	}
	c.Training.Group = 0
	if one := env.tasks&(env.tasks-1) == 0; !one && c.Group > 1 && c.Training.Iterations == 1 && c.Training.Baseline == ppo.Standardised && c.Training.Samples%c.Group == 0 && c.Training.Samples > c.Group {
		c.Training.Group = c.Group
	}
	random := rand.New(rand.NewPCG(problem.Seed, 0x60))
	backend, err := c.backend(p.device)
	if err != nil {
		return nil, err
	}
	run := &training{env: env, problem: problem, method: p.Name(), start: now(problem), end: 1}
	if isJoint(env.tasks) {
		run.end = c.Joint.Explore
	}
	err = p.learn(ctx, run, c, backend, random)
	if err != nil && (run.best == nil || ctx.Err() == nil) {
		return nil, err
	}
	if run.best == nil {
		if err := context.Cause(ctx); err != nil {
			return nil, fmt.Errorf("policy: stopped before its first placement: %w", err)
		}
		return nil, fmt.Errorf("policy: no placement was sampled within the budget")
	}
	o := &plan.Outcome{Device: run.best.device, Score: run.score, Evaluations: env.spent}
	if env.tasks.Has(plan.Schedule) {
		o.Priority = run.best.priority
	}
	if env.tasks.Has(plan.Fuse) {
		o.Fusion = run.best.fusion
	}
	if err := p.settle(ctx, run, o); err != nil {
		return nil, err
	}
	if m := backend.Missing(); m != nil {
		o.Notes = append(o.Notes, fmt.Sprintf("no BLAS library found, the network runs on %s: slower", backend.Name()))
	}
	return o, nil
}

// trialShare is the part of the budget that the curricula share before the rest
// goes to the one that did best.
const trialShare = 0.6

// learn trains through every curriculum in a share of the budget up to run.end,
// and through the last stage of the best one for the rest of it.
func (p *Policy) learn(ctx context.Context, run *training, c PolicyConfig, backend *nn.Backend, random *rand.Rand) error {
	seconds := run.problem.Evaluator.OpSeconds(0)
	all := curricula(run.problem.Graph, run.problem.Units, c.Level, seconds, run.env.devices)
	given := run.env.tasks.Has(plan.Place) && len(run.problem.Device) == run.problem.Graph.NumOps()
	switch {
	case c.fusesByImitation(run.env.tasks):
		all = [][]stage{imitationStages(all[0])}
	case p.near:
		all = [][]stage{nearStages(all[0], run.problem.Device, run.env.devices)}
	case given:
		all = append(all, nearStages(all[0], run.problem.Device, run.env.devices))
	}
	run.env.fit(all, c.FusionKinds)
	if !c.Curriculum {
		last := all[0][len(all[0])-1]
		_, err := p.train(ctx, run, c, last, 0, run.end, nil, backend, random)
		return err
	}
	if !run.env.tasks.Has(plan.Place) || p.near {
		// The other curricula are other ways to cut a graph into places.
		_, err := p.through(ctx, run, c, all[0], 0, run.end, backend, random)
		return err
	}
	var chosen stage
	var best plan.Score
	var carried [][][]float32
	share := trialShare / float64(len(all)) * run.end
	for k, stages := range all {
		run.round = nil
		logits, err := p.through(ctx, run, c, stages, float64(k)*share, float64(k+1)*share, backend, random)
		if err != nil {
			return err
		}
		if run.round != nil && (carried == nil || run.round.Better(best)) {
			chosen, best = stages[len(stages)-1], *run.round
			carried = p.carryAll(run.env, logits, chosen, chosen, seconds)
		}
	}
	if chosen.part == nil { // no curriculum ended a round
		return nil
	}
	_, err := p.train(ctx, run, c, chosen, float64(len(all))*share, run.end, carried, backend, random)
	return err
}

// through trains the stages in turn while the spent budget is between begin and
// end, and returns the logits of the last.
func (p *Policy) through(ctx context.Context, run *training, c PolicyConfig, stages []stage, begin, end float64, backend *nn.Backend, random *rand.Rand) (logits [][][]float32, err error) {
	shares := 0.0
	for _, s := range stages {
		shares += s.share
	}
	width := end - begin
	for k, s := range stages {
		var carried [][][]float32
		if k > 0 {
			carried = p.carryAll(run.env, logits, stages[k-1], s, run.problem.Evaluator.OpSeconds(0))
		}
		if logits, err = p.train(ctx, run, c, s, begin, begin+width*s.share/shares, carried, backend, random); err != nil {
			return nil, err
		}
		begin += width * s.share / shares
	}
	return logits, nil
}

// train runs PPO on the units of s while the spent budget is between begin and
// end, and returns the logits it came to, of each task, [U][columns]. carried, if
// not nil, are the logits to start from.
func (p *Policy) train(ctx context.Context, run *training, c PolicyConfig, s stage, begin, end float64, carried [][][]float32, backend *nn.Backend, random *rand.Rand) ([][][]float32, error) {
	if err := run.env.decideOn(run.problem, s.part, s.oneFusion); err != nil {
		return nil, err
	}
	batch := p.batch(run.problem, c, run.env, s, random)
	if p.network == nil {
		var err error
		if p.network, err = gonet.New(c.network(batch.X.D, run.env.decoder), random, backend); err != nil {
			return nil, err
		}
		p.favourMiddle(c)
	}
	if c.FreeLogits {
		batch.Free = p.network.AddFree(s.name, batch.X.N)
		for _, f := range batch.Free {
			f.Rate = c.FreeRate / c.LearningRate
		}
		if carried != nil {
			if err := p.startFrom(batch, carried); err != nil {
				return nil, err
			}
		} else if s.near != nil {
			p.favour(batch, s, c.Joint.Favour, run.problem.Evaluator.OpSeconds(0))
		}
	}
	trainer := ppo.NewTrainer(c.Training, run, p.network.On(batch), random)
	if run.env.kinds > 0 {
		trainer.Credit = func(_ [][]int32, _ []float32, perChoice [][]float32) {
			for _, a := range perChoice {
				run.env.idle(a)
			}
			run.env.credit(perChoice, c.Classes.LocalCredit*(1-run.spent()), c.Training.Group)
		}
	}
	var best *elites
	if imitation := c.imitation(run.env.tasks); imitation.Window > 0 {
		best = &elites{ImitationConfig: imitation, choices: run.env.choices(p.network.Config().Decision.Tasks())}
	}
	for !run.done(ctx) && run.spent() < end {
		left := (end - run.spent()) / (end - begin)
		trainer.SetEntropy(c.EntropyEnd + (c.Training.Entropy-c.EntropyEnd)*left)
		round, err := trainer.Round(func(int) float64 { return c.LearningRate * (0.1 + 0.9*left) })
		if err != nil {
			return nil, err
		}
		if best != nil {
			best.add(round.Actions, run.scores)
			if err := p.lean(batch, best); err != nil {
				return nil, err
			}
		}
		p.rounds++
	}
	logits, err := p.logits(batch)
	if err != nil {
		return nil, err
	}
	if c.FreeLogits {
		p.network.RemoveFree(s.name)
	}
	return logits, nil
}

// favourMiddle gives the middle levels of scheduling and fusion a head start, by
// the biases of the last layers: the scheduler as it is, and everything fused.
func (p *Policy) favourMiddle(c PolicyConfig) {
	for _, t := range p.network.Config().Decision.Tasks() {
		if t.Name == transformerxl.Placement {
			continue
		}
		bias := p.network.Params().Lookup(t.Name + ".fc2.b").Value
		for k := range t.Kinds {
			bias[k*t.Levels+t.Levels/2] = float32(c.Prior)
		}
	}
}

// favour gives the placement that s begins at a head start, by the free logits of
// batch: of a unit, the device where it has most time.
func (p *Policy) favour(batch *gonet.Batch, s stage, by float64, seconds []float64) {
	p.network.Params() // from a device: the values are changed below
	free := batch.Free[0]
	for u, ops := range s.part.Ops {
		time := make([]float64, free.Shape[1])
		most := s.near[ops[0]]
		for _, i := range ops {
			time[s.near[i]] += seconds[i]
			if time[s.near[i]] > time[most] {
				most = s.near[i]
			}
		}
		free.Value[u*free.Shape[1]+int(most)] += float32(by)
	}
}

// startFrom sets the free logits of batch to what makes the logits carried. Those
// of devices that a unit cannot have stay.
func (p *Policy) startFrom(batch *gonet.Batch, carried [][][]float32) error {
	now, err := p.logits(batch)
	if err != nil {
		return err
	}
	p.network.Params() // from a device: the values are changed below
	for t, rows := range carried {
		free := batch.Free[t]
		columns := free.Shape[1]
		for u, row := range rows {
			for a, x := range row {
				if now[t][u][a] != nn.Masked {
					free.Value[u*columns+a] += x - now[t][u][a]
				}
			}
		}
	}
	return nil
}

// logits returns the logits of every task, [U][columns].
func (p *Policy) logits(batch *gonet.Batch) ([][][]float32, error) {
	out, err := p.network.Forward(batch)
	if err != nil {
		return nil, err
	}
	all := make([][][]float32, len(out.Tasks))
	for t, x := range out.Tasks {
		columns := len(x.V) / batch.X.N
		for u := range batch.X.N {
			all[t] = append(all[t], slices.Clone(x.V[u*columns:(u+1)*columns]))
		}
	}
	return all, nil
}

// carryAll carries the logits of every task from the units of stage from to those
// of to.
func (p *Policy) carryAll(env *environment, logits [][][]float32, from, to stage, seconds []float64) (all [][][]float32) {
	for t, task := range p.network.Config().Decision.Tasks() {
		rows := logits[t]
		if task.Name == transformerxl.Fusion && env.class != nil {
			soft := float32(carriedRange)
			if env.fine != env.coarse {
				soft = carriedChoice
			}
			all = append(all, env.classesOf(from).carry(env.classesOf(to), rows, task.Kinds, task.Levels, from.part, to.part, soft))
			continue
		}
		if task.Name == transformerxl.Fusion && from.oneFusion {
			rows = slices.Repeat(rows[:1], len(rows))
		}
		all = append(all, carryOver(rows, task.Levels, from.part, to.part, seconds))
	}
	return all
}

// carryOver gives each unit of fine the mean, by time, of the logits of the
// units of coarse that its ops belong to, softened so that the finer stage can
// still change its mind. A row holds one or more choices among levels levels.
func carryOver(logits [][]float32, levels int, coarse, fine *unit.Partition, seconds []float64) [][]float32 {
	down := make([][]float32, fine.NumUnits())
	for u, ops := range fine.Ops {
		row := make([]float32, len(logits[0]))
		weight := float32(0)
		for _, i := range ops {
			from := logits[coarse.Of[i]]
			w := float32(seconds[i])
			weight += w
			for lo := 0; lo < len(row); lo += levels {
				top := slices.Max(from[lo : lo+levels])
				for a := lo; a < lo+levels; a++ {
					row[a] += w * max(from[a]-top, -carriedRange)
				}
			}
		}
		for a := range row {
			row[a] /= weight
		}
		down[u] = row
	}
	return down
}

// carriedRange is the most by which a carried logit lies below the best: e^-4 is
// a probability of about 2%.
const carriedRange = 2.5

// carriedChoice is carriedRange for choices of which thousands are sampled at
// once.
const carriedChoice = 4

// fitSamples lowers the samples of a round so that a small budget still has
// rounds to learn from.
func fitSamples(c ppo.Config, evaluations int) int {
	k := c.Samples
	for evaluations > 0 && k > 8*c.Minibatches && k*8 > evaluations {
		k /= 2
	}
	return k - k%c.Minibatches
}

// batch is the network's input for the units of env.
func (p *Policy) batch(problem *plan.Problem, c PolicyConfig, env *environment, s stage, random *rand.Rand) *gonet.Batch {
	table := features.Build(problem.Graph, s.part, s.chain, problem.Evaluator.OpSeconds(0), problem.Machine, c.Features, random)
	near := features.Adjacency(problem.Graph, env.part, graphsage.Default(1).MaxNeighbours)
	n := env.part.NumUnits()
	b := &gonet.Batch{
		X:          nn.Mat{N: n, D: len(table.Names), V: table.X},
		Neighbours: &graphsage.Neighbours{Start: near.At, Index: near.Index},
	}
	if !env.tasks.Has(plan.Place) {
		return b
	}
	b.Allowed = make([]bool, n*c.Devices)
	for u := range n {
		copy(b.Allowed[u*c.Devices:], env.allowed[u*env.devices:(u+1)*env.devices])
	}
	return b
}

// Save writes the network, its optimiser and the configuration; it is part of
// Saver.
func (p *Policy) Save(path string) error {
	if p.network == nil {
		return nil
	}
	c, err := json.Marshal(p.config)
	if err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	extra := map[string]string{"policy": string(c), "features": fmt.Sprint(features.Version), "rounds": fmt.Sprint(p.rounds)}
	return fsx.WriteFile(path, func(w io.Writer) error { return p.network.Save(w, extra) })
}

// training scores what the trainer samples and keeps the best. It implements
// ppo.Env.
type training struct {
	env     *environment
	problem *plan.Problem
	method  string
	start   float64 // on the problem's clock
	end     float64 // share of the budget that the stages of learn have
	scores  []plan.Score
	best    *draft // nil before the first score
	score   plan.Score
	round   *plan.Score // the best since it was last set to nil
}

func now(p *plan.Problem) float64 {
	if p.Clock == nil {
		return 0
	}
	return p.Clock()
}

// spent is the share of the budget that is used up.
func (t *training) spent() (share float64) {
	if n := t.problem.Budget.Evaluations; n > 0 {
		share = float64(t.env.spent) / float64(n)
	}
	if s := t.problem.Budget.Seconds; s > 0 {
		share = max(share, (now(t.problem)-t.start)/s)
	}
	return min(share, 1)
}

// done reports whether another round would exceed the budget.
func (t *training) done(ctx context.Context) bool {
	if ctx.Err() != nil || t.spent() >= 1 {
		return true
	}
	n := t.problem.Budget.Evaluations
	return n > 0 && t.env.spent+len(t.scores) > n
}

// Rewards is as ppo.Env says.
func (t *training) Rewards(actions [][]int32, rewards []float32) error {
	if len(t.scores) != len(actions) {
		t.scores = make([]plan.Score, len(actions))
	}
	t.env.evaluate(actions, t.scores)
	improved := false
	for k, s := range t.scores {
		rewards[k] = t.env.reward(s)
		if !t.env.isExact(k, s) {
			continue
		}
		if t.round == nil || s.Better(*t.round) {
			t.round = &s
		}
		if t.best == nil || s.Better(t.score) {
			if t.best == nil {
				t.best = t.env.newDraft(len(t.env.part.Of))
			}
			t.env.decode(actions[k], t.best)
			t.score, improved = s, true
		}
	}
	t.soften(rewards)
	if report := t.problem.Report; report != nil {
		p := plan.Progress{Method: t.method, Evaluations: t.env.spent, Best: t.score}
		if improved {
			p.Device = t.best.device
			if t.env.tasks.Has(plan.Schedule) {
				p.Priority = t.best.priority
			}
			if t.env.tasks.Has(plan.Fuse) {
				p.Fusion = t.best.fusion
			}
		}
		report(p)
	}
	return nil
}

// soften keeps infeasible samples from drowning the differences between the
// feasible ones of a round once rewards are standardised: below the worst
// feasible one by the feasible ones' range, or ordered by overflow where none
// fits.
func (t *training) soften(rewards []float32) {
	var feasible []float32
	for k, s := range t.scores {
		if s.Feasible() {
			feasible = append(feasible, rewards[k])
		}
	}
	if len(feasible) == len(rewards) {
		return
	}
	capacity := float32(t.problem.Machine.Devices[0].Memory)
	if len(feasible) == 0 {
		for k, s := range t.scores {
			rewards[k] = infeasibleReward - float32(s.Overflow)/capacity
		}
		return
	}
	low, high := slices.Min(feasible), slices.Max(feasible)
	for k, s := range t.scores {
		if !s.Feasible() {
			rewards[k] = max(infeasibleReward, low-(high-low)-1e-3)
		}
	}
}
