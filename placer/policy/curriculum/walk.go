package curriculum

import (
	"errors"

	"placer/placer/policy/rollout"
	"placer/plan"
)

// trialShare is the part of the budget that several curricula share before the rest
// goes to the one that did best.
const trialShare = 0.6

// Position is where a walk stands.
type Position struct {
	Spent      float64 `json:"spent"`      // share of the budget
	Curriculum int     `json:"curriculum"` // under way; the number of them: the best one goes on
	Stage      int     `json:"stage"`      // of the curriculum
	// Round is the best that the curriculum has sampled, Best what the best of those
	// that have ended had, Chosen that one, -1 before there is one.
	Round  *plan.Score `json:"round,omitempty"`
	Chosen int         `json:"chosen"`
	Best   plan.Score  `json:"best"`
}

// Train trains on the units of s while the spent share of the budget is between begin
// and end, and returns what was learnt, as logits of every task, [U][columns].
// learnt, if not nil, was learnt on the units of from. Units too coarse for the devices'
// memories are rollout.ErrTooCoarse: what begin to end would have spent is the next
// stage's.
type Train func(s, from Stage, learnt Logits, begin, end float64) (Logits, error)

// Logits are those of every task, [tasks][U][columns].
type Logits [][][]float32

// Walk trains through every curriculum of all in an equal share of the budget, and
// through the last stage of the best one for the rest of it; a single curriculum has
// the whole budget. It keeps at up to date. With resume it goes on where at stands.
// round is the best score since Walk last set it to nil.
//
// A stage whose units are too coarse is left out, and so is a curriculum whose finest
// stage is: that is an error where it is so of all.
func Walk(all [][]Stage, at *Position, resume bool, round **plan.Score, train Train) error {
	start := *at
	if !resume {
		start = Position{}
		*at = Position{Chosen: -1}
	}
	if len(all) == 1 {
		_, err := through(all[0], at, start.Stage, 0, 1, train)
		return err
	}
	var chosen Stage
	var learnt Logits
	if resume && at.Chosen >= 0 && at.Chosen < len(all) { // what it learnt is not kept
		chosen = last(all[at.Chosen])
	}
	share := trialShare / float64(len(all))
	begin := float64(start.Curriculum) * share
	var coarse error // of the last curriculum that was left out
	tried := false   // some curriculum was not
	for k := start.Curriculum; k < len(all); k++ {
		*round = nil
		first := 0
		if resume && k == start.Curriculum {
			*round, first = start.Round, start.Stage
		}
		at.Curriculum = k
		end := float64(k+1) * share
		logits, err := through(all[k], at, first, begin, end, train)
		if errors.Is(err, rollout.ErrTooCoarse) {
			coarse = err
			continue
		}
		if err != nil {
			return err
		}
		begin, tried = end, true
		if *round != nil && (chosen.Units == nil || (*round).Better(at.Best)) {
			chosen, learnt = last(all[k]), logits
			at.Chosen, at.Best = k, **round
		}
	}
	if chosen.Units == nil { // no curriculum ended a round
		if tried {
			return nil
		}
		return coarse
	}
	at.Curriculum, at.Stage = len(all), 0
	_, err := train(chosen, chosen, learnt, begin, 1)
	return err
}

func last(stages []Stage) Stage { return stages[len(stages)-1] }

// through trains on the stages from first on while the spent budget is between begin
// and end, each by its share, and returns what the last has learnt.
func through(stages []Stage, at *Position, first int, begin, end float64, train Train) (learnt Logits, err error) {
	shares := 0.0
	for _, s := range stages {
		shares += s.Share
	}
	width, until := end-begin, begin
	first = min(first, len(stages)-1)
	var from Stage // that learnt is of
	for k, s := range stages {
		until += width * s.Share / shares
		if k < first {
			begin = until
			continue
		}
		at.Stage = k
		logits, err := train(s, from, learnt, begin, until)
		if errors.Is(err, rollout.ErrTooCoarse) && k < len(stages)-1 {
			continue
		}
		if err != nil {
			return nil, err
		}
		begin, from, learnt = until, s, logits
	}
	return learnt, nil
}
