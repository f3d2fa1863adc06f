package sequential

import (
	"context"
	"math"

	"placer/nn"
	"placer/plan"
	"placer/transformerxl"
)

// reinforceTasks makes one rollout of x and c.Samples draws of schedule and fusion for its
// placement, and takes a step of the policy gradient on what decides them: the rest of
// the network stays, for placements of all draws are the same. Rewards are relative to
// the mean of the draws. It ends with ctx, and nothing has been learned then.
func (t *trainer) reinforceTasks(ctx context.Context, x lesson, c *PretrainConfig, rate float64) (improvement, error) {
	e, n := t.rollouts, t.policy.net
	e.on(x.instance)
	priors := drawHeuristics(t.random, 1, 1)
	e.roll(priors, rolling{refinements: t.random.IntN(passes), choose: sampler([]float32{0}, t.random, x.d)})
	t.device = resized(t.device, len(x.part.Of))
	x.place(e.states[0].best, t.device)
	decoder, logits := newTaskDecoder(x.instance, plan.AllTasks), n.tasksOf(x.instance)
	schedules, fusions, times := make([][]int32, c.Samples), make([][]int32, c.Samples), make([]float64, c.Samples)
	out := improvement{Best: math.Inf(1)}
	for k := range times {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		levels := logits.sample(t.random)
		schedules[k], fusions[k] = levels.schedule, levels.fusion
		times[k] = relative(x.problem.Evaluator.Evaluate(decoder.decide(t.device, levels)), x.instance, x.expert)
		out.Mean += times[k] / float64(c.Samples)
		out.Best = min(out.Best, times[k])
	}
	advantage := rewards(times)
	advantages(advantage, len(advantage))
	schedule, ofSchedule := policyGradient(logits.schedule, schedules, advantage, c.Entropy)
	fusion, ofFusion := policyGradient(logits.fusion, fusions, advantage, c.Entropy)
	out.Entropy = (ofSchedule + ofFusion) / 2
	n.params.ZeroGrad()
	n.encoder.backward(x.instance, map[string]nn.Mat{transformerxl.Scheduling: schedule, transformerxl.Fusion: fusion})
	_, err := t.adam.Step(n.params.Named(transformerxl.Scheduling+".", transformerxl.Fusion+"."), rate)
	n.params.ZeroGrad()
	n.changed()
	return out, err
}

// policyGradient returns the gradient of -A log p + weight sum p log p, the mean over
// draws and rows of logits, [U,levels], and the mean entropy of a row in nats. chosen,
// [K][U], are the draws and advantage, [K], is A.
func policyGradient(logits nn.Mat, chosen [][]int32, advantage []float32, weight float64) (gradient nn.Mat, entropy float64) {
	gradient = nn.NewMat(logits.N, logits.D)
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
		row := gradient.Row(u)
		for a, q := range p {
			if q > 0 {
				row[a] += float32(weight * scale * q * (math.Log(q) + h))
			}
		}
		for k, of := range chosen {
			g := float64(advantage[k]) * scale / float64(len(chosen))
			for a, q := range p {
				row[a] += float32(g * q)
			}
			row[of[u]] -= float32(g)
		}
	}
	return gradient, entropy
}
