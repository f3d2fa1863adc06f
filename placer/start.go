package placer

import (
	"math"
	"slices"

	"placer/gonet"
	"placer/graph/unit"
	"placer/nn"
	"placer/transformerxl"
)

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
func (p *Policy) favour(batch *gonet.Batch, s stage, by float32, seconds []float64) {
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
		free.Value[u*free.Shape[1]+int(most)] += by
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
func (p *Policy) carryAll(run *training, c PolicyConfig, logits [][][]float32, from, to stage) (all [][][]float32) {
	env, seconds := run.env, run.problem.Evaluator.OpSeconds(0)
	for t, task := range p.network.Config().Decision.Tasks() {
		rows := logits[t]
		if task.Name == transformerxl.Fusion && env.class != nil {
			x, y := env.classesOf(from), env.classesOf(to)
			if c.fusesAlone(env.tasks) {
				leave := c.Fusion.Leave
				if env.weight != nil {
					leave = min(leave, c.Fusion.Strays/float64(len(y.ops)))
				}
				rows = x.leave(y, rows, task.Kinds, task.Levels, from.part, to.part, run.best.fusion, leave)
			} else {
				rows = x.carry(rows, task.Kinds, task.Levels, from.part, to.part, carriedRange)
			}
			all = append(all, rows)
			continue
		}
		if task.Name == transformerxl.Fusion && from.oneFusion {
			rows = slices.Repeat(rows[:1], len(rows))
		}
		reach := float32(carriedRange)
		if task.Name == transformerxl.Placement {
			reach = max(reach, logitOf(carriedChance, env.devices))
		}
		all = append(all, carryOver(rows, task.Levels, from.part, to.part, seconds, reach))
	}
	return all
}

// carryOver gives each unit of fine the mean, by time, of the logits of the
// units of coarse that its ops belong to, none further below the best than reach,
// so that the finer stage can still change its mind. A row holds one or more choices among levels levels.
func carryOver(logits [][]float32, levels int, coarse, fine *unit.Partition, seconds []float64, reach float32) [][]float32 {
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
					row[a] += w * max(from[a]-top, -reach)
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

// carriedRange is the most by which a carried logit lies below the best: a chance
// of at most a twelfth of the best one's is left.
const carriedRange = 2.5

// carriedChance is the least chance that carried logits leave the best device, if
// there are so many others that carriedRange would leave it less.
const carriedChance = 0.8

// logitOf is by how much a logit lies above n-1 equal ones whose best has chance p.
func logitOf(p float64, n int) float32 {
	return float32(math.Log(p / (1 - p) * float64(n-1)))
}
