package hlo

import (
	"regexp"
	"strings"
)

// place is what a name says of an argument.
type place uint8

const (
	input place = iota
	weight
	state // an optimizer's, a running mean
)

var (
	// mlirArgument is what MLIR calls an argument.
	mlirArgument = regexp.MustCompile(`^arg\d+$`)

	nameParts = regexp.MustCompile(`[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*`)
	// weightNames are those of collections and of leaves in Flax, Haiku and Equinox.
	weightNames = regexp.MustCompile(`^(?:(?:\w+_)?(?:params|variables|weights?)|kernel|embedding|bias|scale|offset|w|b)$`)
	// stateNames are those of Flax's collections and of Optax's states.
	stateNames = regexp.MustCompile(`^(?:opt_state|optimizer_state|batch_stats|mu|nu|trace|v_row|v_col|ema|count)$`)
)

// placeOf is what the name of an argument says: params['Dense_0']['kernel'], or, where HLO
// has nothing but its own form of it, params__Dense_0____kernel__.1. A name without parts, as
// an array that a function takes has it, says nothing.
func placeOf(x *instruction) place {
	name := x.attr.scope
	if name == "" {
		name = strings.ReplaceAll(x.name, "__", " ")
		if at := strings.LastIndexByte(name, '.'); at >= 0 {
			name = name[:at]
		}
	}
	parts := nameParts.FindAllString(name, -1)
	is := input
	for _, p := range parts[min(len(parts), 1):] {
		if stateNames.MatchString(p) {
			return state
		}
		if weightNames.MatchString(p) {
			is = weight
		}
	}
	if len(parts) > 1 && weightNames.MatchString(parts[0]) {
		is = weight
	}
	if len(parts) > 1 && stateNames.MatchString(parts[0]) {
		is = state
	}
	return is
}
