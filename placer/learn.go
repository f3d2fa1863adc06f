package placer

import (
	"context"
	"math/rand/v2"

	"placer/gonet"
	"placer/nn"
	"placer/plan"
	"placer/ppo"
)

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
	case c.fusesAlone(run.env.tasks):
		all = [][]stage{c.Fusion.fusionStages(all[0], run.env.plain, run.problem.Units, run.env.weight != nil)}
	case p.near:
		all = [][]stage{nearStages(all[0], run.problem.Device, run.env.devices)}
	case given:
		all = append(all, nearStages(all[0], run.problem.Device, run.env.devices))
	}
	run.env.fit(all, c.FusionKinds)
	if run.resumed == nil {
		p.at = position{Chosen: -1}
	}
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
	if at := run.resumed; at != nil && at.Chosen >= 0 && at.Chosen < len(all) {
		stages := all[at.Chosen]
		chosen, best = stages[len(stages)-1], at.Best
		chosen.near = run.best.device // the logits to carry are not kept
	}
	for k, stages := range all {
		run.round = nil
		if at := run.resumed; at != nil {
			if k < at.Curriculum {
				continue
			}
			run.round = at.Round
		}
		p.at.Curriculum = k
		logits, err := p.through(ctx, run, c, stages, float64(k)*share, float64(k+1)*share, backend, random)
		if err != nil {
			return err
		}
		if run.round != nil && (chosen.part == nil || run.round.Better(best)) {
			chosen, best = stages[len(stages)-1], *run.round
			carried = p.carryAll(run, c, logits, chosen, chosen)
			p.at.Chosen, p.at.Best = k, best
		}
	}
	if chosen.part == nil { // no curriculum ended a round
		return nil
	}
	p.at.Curriculum, p.at.Stage = len(all), 0
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
	first := 0
	if run.resumed != nil {
		first = min(run.resumed.Stage, len(stages)-1)
	}
	for k, s := range stages {
		if k < first {
			begin += width * s.share / shares
			continue
		}
		p.at.Stage = k
		var carried [][][]float32
		if k > first {
			carried = p.carryAll(run, c, logits, stages[k-1], s)
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
	if err := run.env.decideOn(run.problem, s); err != nil {
		return nil, err
	}
	batch := p.batch(run.problem, c, run.env, s, random)
	taken := p.take(run, c, s, batch)
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
		switch {
		case taken: // so are the free logits
		case carried != nil:
			if err := p.startFrom(batch, carried); err != nil {
				return nil, err
			}
		case s.near != nil:
			p.favour(batch, s, max(float32(c.Joint.Favour), logitOf(c.Joint.Stay, run.env.devices)), run.problem.Evaluator.OpSeconds(0))
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
	var worth *worth
	var gains *gains
	var guide steerer
	switch {
	case !c.fusesAlone(run.env.tasks):
	case run.env.settles:
		gains = newGains(c.Fusion, s.class, random)
		best.Mix, guide = c.Fusion.SettleMix, gains
	default:
		worth = newWorth(c.Fusion, len(s.class.ops), begin > 0)
		guide = worth
	}
	// A first round there is even where preparing took the share of all stages.
	for !run.done(ctx) && (run.spent() < end || run.best == nil) {
		p.at.Spent, p.at.Round = run.spent(), run.round
		left := max(0, (end-p.at.Spent)/(end-begin))
		trainer.SetEntropy(c.EntropyEnd + (c.Training.Entropy-c.EntropyEnd)*left)
		round, err := trainer.Round(func(int) float64 { return c.LearningRate * (0.1 + 0.9*left) })
		if err != nil {
			return nil, err
		}
		if best != nil {
			samples := best.add(round.Actions, run.scores)
			switch {
			case gains != nil:
				gains.add(run.env.differences[:len(samples)])
				run.env.weigh(run.best)
				gains.follow(s.class, run.best.fusion, run.score.Seconds)
				gains.add(run.env.probe(gains.probes.plans(run.best.fusion)))
			case worth != nil:
				worth.add(samples, run.env.cost(len(samples)), run.spent(), run.score.Seconds)
				run.env.weigh(run.best)
			}
			if err := p.lean(batch, best, guide, run.spent()); err != nil {
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
