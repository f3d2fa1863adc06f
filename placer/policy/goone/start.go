package goone

import (
	"placer/nn"
	"placer/nn/gonet"
	"placer/placer/policy/curriculum"
	"placer/plan"
)

// start makes the policy ready for stage s: with what was learnt in the stage before, if
// there is any, or what a checkpoint holds.
func (t *trainer) start(batch *gonet.Batch, s curriculum.Stage, from curriculum.Learnt) error {
	taken := t.take(batch, s)
	if t.network == nil {
		if err := t.newNetwork(batch.X.D); err != nil {
			return err
		}
	}
	if t.config.InstanceRate == 0 {
		return nil
	}
	batch.InstanceLogits = t.network.AddInstanceLogits(s.Name, batch.X.N)
	for _, f := range batch.InstanceLogits {
		f.Rate = t.config.InstanceRate / t.config.LearningRate
	}
	devices := t.run.Problem.Machine.NumDevices()
	switch {
	case taken: // so are the instance's logits
	case from.Logits != nil:
		return t.startFrom(batch, curriculum.WarmStart(from, t.decoder.Heads(), s, t.seconds, devices))
	case from.Units != nil && t.decoder.Tasks.Has(plan.Place):
		// A training that was cut off goes on near its best placement.
		t.network.Params() // from a device: the values are changed below
		free := batch.InstanceLogits[0]
		for u, d := range curriculum.Majority(s.Units, t.run.Best.Device, t.seconds, devices) {
			free.Value[u*free.Shape[1]+int(d)] += curriculum.StartBias(devices)
		}
	}
	return nil
}

// startFrom sets the instance's logits of batch to what makes the logits carried.
// Those of devices that a unit cannot have stay.
func (t *trainer) startFrom(batch *gonet.Batch, carried curriculum.Logits) error {
	now, err := t.logits(batch)
	if err != nil {
		return err
	}
	t.network.Params() // from a device: the values are changed below
	for i, rows := range carried {
		free := batch.InstanceLogits[i]
		columns := free.Shape[1]
		for u, row := range rows {
			for a, x := range row {
				if now[i][u][a] != nn.Masked {
					free.Value[u*columns+a] += x - now[i][u][a]
				}
			}
		}
	}
	return nil
}
