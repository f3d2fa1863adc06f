package sequential

import (
	"math"

	"placer/nn"
	"placer/plan"
	"placer/transformerxl"
)

// reinforceTasks makes one rollout of s and c.Samples draws of schedule and fusion for its
// placement, and takes a step of the policy gradient on what decides them: the rest of
// the network stays, for placements of all draws are the same. Rewards are relative to
// the mean of the draws.
func (t *trainer) reinforceTasks(s *instance, expert float64, c *PretrainConfig, rate float64) (improvement, error) {
	e, n := t.rollouts, t.policy.net
	e.on(s)
	e.roll(drawHeuristics(t.random, 1, 1), t.random.IntN(passes), false, sampler([]float32{0}, t.random, s.d))
	t.device = resized(t.device, len(s.part.Of))
	s.place(e.states[0].best, t.device)
	decoder, logits := newTaskDecoder(s, plan.AllTasks), n.tasksOf(s)
	draws, reward := make([]unitLevels, c.Samples), make([]float32, c.Samples)
	out := improvement{Best: math.Inf(1)}
	for k := range draws {
		draws[k] = logits.sample(t.random)
		r := relative(s.problem.Evaluator.Evaluate(decoder.decide(t.device, draws[k])), s, expert)
		reward[k] = -float32(math.Sqrt(r))
		out.Mean += r / float64(c.Samples)
		out.Best = min(out.Best, r)
	}
	advantages(reward, len(reward))
	schedule, fusion := nn.NewMat(logits.schedule.N, scheduleLevels), nn.NewMat(logits.fusion.N, fusionLevels)
	out.Entropy = (policyGradient(logits.schedule, draws, func(l unitLevels) []int32 { return l.schedule }, reward, c.Entropy, schedule) +
		policyGradient(logits.fusion, draws, func(l unitLevels) []int32 { return l.fusion }, reward, c.Entropy, fusion)) / 2
	n.params.ZeroGrad()
	n.encoder.backward(s, map[string]nn.Mat{transformerxl.Scheduling: schedule, transformerxl.Fusion: fusion})
	_, err := t.adam.Step(n.params.Named(transformerxl.Scheduling+".", transformerxl.Fusion+"."), rate)
	n.params.ZeroGrad()
	n.changed()
	return out, err
}

// policyGradient writes the gradient of -A log p + entropy weight sum p log p, the mean
// over draws and rows of logits, [U,levels], and returns the mean entropy of a row.
func policyGradient(logits nn.Mat, draws []unitLevels, of func(unitLevels) []int32, advantage []float32, weight float64, to nn.Mat) (entropy float64) {
	p := make([]float64, logits.D)
	scale := 1 / float64(logits.N)
	for u := range logits.N {
		nn.SoftmaxRow(p, logits.Row(u))
		h := 0.0
		for _, q := range p {
			if q > 0 {
				h -= q * math.Log(q)
			}
		}
		entropy += h * scale
		row := to.Row(u)
		for a, q := range p {
			if q > 0 {
				row[a] += float32(weight * scale * q * (math.Log(q) + h))
			}
		}
		for k, l := range draws {
			g := float64(advantage[k]) * scale / float64(len(draws))
			for a, q := range p {
				row[a] += float32(g * q)
			}
			row[of(l)[u]] -= float32(g)
		}
	}
	return entropy
}
