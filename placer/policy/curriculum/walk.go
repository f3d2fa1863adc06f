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

// Logits are those of every task, [tasks][U][columns].
type Logits [][][]float32

// Learnt is what training on a stage came to.
type Learnt struct {
	Stage
	Logits Logits // on the units of the stage; nil where nothing is known
}

// Leg is a part of a walk: the training on one stage.
type Leg struct {
	Stage
	From       Learnt  // the stage before it in the curriculum; Units is nil for none
	Begin, End float64 // shares of the budget that are spent when it begins and ends
}

// Train trains on the units of a leg's stage while the spent share of the budget is
// between Begin and End, and returns what was learnt. Units too coarse for the devices'
// memories are rollout.ErrTooCoarse: what Begin to End would have spent is the next leg's.
type Train func(Leg) (Logits, error)

// Walk is a training through every one of several curricula in an equal share of the
// budget, and through the last stage of the best one for the rest of it; a single
// curriculum has the whole budget.
//
// A stage whose units are too coarse is left out, and so is a curriculum whose finest
// stage is: that is an error where it is so of all.
type Walk struct {
	Curricula [][]Stage
	At        *Position    // where it stands, kept up to date
	Run       *rollout.Run // whose Round is the best score since the walk last set it to nil
	Train     Train
}

// Begin begins anew.
func (w Walk) Begin() error {
	*w.At = Position{Chosen: -1}
	return w.Resume()
}

// Resume goes on where At stands.
func (w Walk) Resume() error {
	if len(w.Curricula) == 1 {
		_, err := w.through(w.Curricula[0], w.At.Stage, 0, 1)
		return err
	}
	best, spent, err := w.tryAll()
	if err != nil || best.Units == nil {
		return err
	}
	w.At.Curriculum, w.At.Stage = len(w.Curricula), 0
	_, err = w.Train(Leg{Stage: best.Stage, From: best, Begin: spent, End: 1})
	return err
}

// tryAll trains through the curricula from At on. It returns what the last stage of the
// best one has learnt, whose Units are nil where none ended a round, and the share of the
// budget that they have spent.
func (w Walk) tryAll() (best Learnt, spent float64, err error) {
	start := *w.At
	if k := start.Chosen; k >= 0 && k < len(w.Curricula) { // what it learnt is not kept
		best.Stage = last(w.Curricula[k])
	}
	share := trialShare / float64(len(w.Curricula))
	spent = float64(start.Curriculum) * share
	var coarse error // of the last curriculum that was left out
	tried := false   // some curriculum was not
	for k := start.Curriculum; k < len(w.Curricula); k++ {
		w.At.Curriculum, w.Run.Round = k, nil
		first := 0
		if k == start.Curriculum {
			w.Run.Round, first = start.Round, start.Stage
		}
		end := float64(k+1) * share
		logits, err := w.through(w.Curricula[k], first, spent, end)
		if errors.Is(err, rollout.ErrTooCoarse) {
			coarse = err
			continue
		}
		if err != nil {
			return best, spent, err
		}
		spent, tried = end, true
		if x := w.Run.Round; x != nil && (best.Units == nil || x.Better(w.At.Best)) {
			best = Learnt{last(w.Curricula[k]), logits}
			w.At.Chosen, w.At.Best = k, *x
		}
	}
	if best.Units == nil && !tried {
		return best, spent, coarse
	}
	return best, spent, nil
}

func last(stages []Stage) Stage { return stages[len(stages)-1] }

// through trains on the stages from first on while the spent budget is between begin
// and end, each by its share, and returns what the last has learnt.
func (w Walk) through(stages []Stage, first int, begin, end float64) (Logits, error) {
	shares := 0.0
	for _, s := range stages {
		shares += s.Share
	}
	width, until := end-begin, begin
	first = min(first, len(stages)-1)
	var from Learnt
	for k, s := range stages {
		until += width * s.Share / shares
		if k < first {
			begin = until
			continue
		}
		w.At.Stage = k
		logits, err := w.Train(Leg{Stage: s, From: from, Begin: begin, End: until})
		if errors.Is(err, rollout.ErrTooCoarse) && k < len(stages)-1 {
			continue
		}
		if err != nil {
			return nil, err
		}
		begin, from = until, Learnt{s, logits}
	}
	return from.Logits, nil
}
