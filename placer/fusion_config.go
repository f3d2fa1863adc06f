package placer

import "fmt"

// FusionConfig describes how fusion is learnt where it is all that is decided. It
// is decided on classes of ops, first of like surroundings (ClassConfig.Most), then
// apart by place in time, then by segment, then op by op.
type FusionConfig struct {
	Levels    int // of fusion priority
	Samples   int // of a round, at most
	Imitation ImitationConfig
	// LearningRate is the network's, FreeRate that of the free logits, by which it
	// imitates: both low, PPO is to disturb that little.
	LearningRate, FreeRate float64
	// Finest is the most classes that the second and the third stage may have; one
	// that would have more has those of the stage before or, the third where the
	// evaluator tells what kernels take, divides its choices among segments.
	Finest int
	// Timed, Segmented and Single are the shares of the budget behind which the
	// second, third and fourth stage begin, the last only where the evaluator tells
	// what kernels take. A stage begins at the best plan so far: a class leaves it with
	// chance Leave; where the evaluator tells, with less if more than Strays would.
	Timed, Segmented, Single, Leave, Strays float64

	// What a level is taken to be worth is, by a share of Local, the time that the
	// kernels of a class's ops save on the critical path, and otherwise the whole
	// step; both as means of the samples, of which a round's count by Decay less in
	// each later round. Chances by worth have temperatures from Hot to Cold, as parts
	// of the step time. Local is 0 where the evaluator does not tell.
	Local, Decay, Hot, Cold float64
	// Warm is the share of the budget in which levels are chosen by their worth
	// alone. From then on they are by imitation, but for a chance of Explore, of
	// Explore x Finer behind the first stage, which falls to 0 over the last fifth:
	// by worth, for a share of Guided, or else any level.
	Warm, Explore, Finer, Guided float64

	// Where the evaluator tells, the last two stages go by what levels gain over the
	// best plan: a round moves the chances by a share of SettleMix to the best samples,
	// and of what that leaves a share of Settle is by gains, at temperature Settled, an
	// untried level taken to cost Untried, both as parts of the step time. Exploration
	// is of any level there, and of no more than Strays classes a sample.
	SettleMix, Settle, Settled, Untried float64
	// Gains are also learnt, after each round, from what the kernels of up to Probes
	// plans take that differ from the best one in a share of Probed of the classes.
	// These plans are not run and do not count as evaluations.
	Probes int
	Probed float64
}

// DefaultFusion returns the configuration of go-table3.
func DefaultFusion() FusionConfig {
	return FusionConfig{
		Levels: 8, Samples: 16, Imitation: ImitationConfig{Window: 320, Elite: 0.05, Mix: 0.3, Ranked: true}, LearningRate: 3e-4, FreeRate: 1e-4,
		Finest: 4096, Timed: 0.5, Segmented: 0.7, Single: 0.85, Leave: 0.02, Strays: 5,
		Local: 0.75, Decay: 0.1, Hot: 1e-3, Cold: 2e-4, Warm: 0.2, Explore: 0.03, Finer: 0.3, Guided: 0.8,
		SettleMix: 0.5, Settle: 0.05, Settled: 1e-6, Untried: 1e-5, Probes: 128, Probed: 0.02,
	}
}

// Validate reports a fault.
func (c FusionConfig) Validate() error {
	if c.Imitation.Window == 0 {
		return nil
	}
	if err := c.Imitation.Validate(); err != nil {
		return err
	}
	if c.Levels < 2 || c.Levels > 255 || c.Samples < 1 || c.Finest < 1 || !(c.LearningRate > 0) || !(c.FreeRate > 0) || !(c.Hot >= c.Cold && c.Cold > 0) || !(c.Settled > 0) || !(c.Untried >= 0) || !(c.Timed > 0 && c.Timed < c.Segmented && c.Segmented < c.Single && c.Single < 1) || c.Probes < 0 {
		return fmt.Errorf("policy: fusion alone %+v: want 2 to 255 levels, positive samples, rates and classes, temperatures that fall, stages that begin one after another within the budget", c)
	}
	for _, x := range []float64{c.Leave, c.Local, c.Decay, c.Warm, c.Explore, c.Finer, c.Guided, c.Probed, c.SettleMix, c.Settle} {
		if !(x >= 0 && x <= 1) {
			return fmt.Errorf("policy: fusion alone %+v: want shares and chances from 0 to 1", c)
		}
	}
	return nil
}
