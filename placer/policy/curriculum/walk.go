package curriculum

import "placer/plan"

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
// learnt, if not nil, was learnt on the units of from.
type Train func(s, from Stage, learnt Logits, begin, end float64) (Logits, error)

// Logits are those of every task, [tasks][U][columns].
type Logits [][][]float32

// Walk trains through every curriculum of all in an equal share of the budget, and
// through the last stage of the best one for the rest of it; a single curriculum has
// the whole budget. It keeps at up to date. With resume it goes on where at stands.
// round is the best score since Walk last set it to nil.
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
	for k := start.Curriculum; k < len(all); k++ {
		*round = nil
		first := 0
		if resume && k == start.Curriculum {
			*round, first = start.Round, start.Stage
		}
		at.Curriculum = k
		logits, err := through(all[k], at, first, float64(k)*share, float64(k+1)*share, train)
		if err != nil {
			return err
		}
		if *round != nil && (chosen.Units == nil || (*round).Better(at.Best)) {
			chosen, learnt = last(all[k]), logits
			at.Chosen, at.Best = k, **round
		}
	}
	if chosen.Units == nil { // no curriculum ended a round
		return nil
	}
	at.Curriculum, at.Stage = len(all), 0
	_, err := train(chosen, chosen, learnt, float64(len(all))*share, 1)
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
	width := end - begin
	first = min(first, len(stages)-1)
	for k, s := range stages {
		until := begin + width*s.Share/shares
		if k >= first {
			at.Stage = k
			from := Stage{}
			if k > first {
				from = stages[k-1]
			}
			if learnt, err = train(s, from, learnt, begin, until); err != nil {
				return nil, err
			}
		}
		begin = until
	}
	return learnt, nil
}
