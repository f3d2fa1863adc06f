package portfolio

import (
	"slices"

	"placer/plan"
)

// mostElite bounds the elite plans.
const mostElite = 6

// elite are the best plans that explorers left behind, the best first.
type elite []member

type member struct {
	plan.Decision
	score plan.Score
}

// admit takes d, which comes to s, in if it is among the best and of another score than
// all: plans of equal scores are mostly the same under other names of devices.
func (e *elite) admit(d plan.Decision, s plan.Score) {
	k := 0
	for k < len(*e) && (*e)[k].score.Better(s) {
		k++
	}
	if k == mostElite || k < len(*e) && (*e)[k].score == s {
		return
	}
	*e = slices.Insert(*e, k, member{d.Clone(), s})
	*e = (*e)[:min(len(*e), mostElite)]
}

func (e elite) decisions() []plan.Decision {
	all := make([]plan.Decision, len(e))
	for k, m := range e {
		all[k] = m.Decision
	}
	return all
}
