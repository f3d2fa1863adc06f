package strategy

import (
	"fmt"
	"strconv"
	"strings"
)

// Parse reads a strategy as String writes it: "zero-1=2 1f1b=4 tp=2 vocab sp mb=8
// recompute", "one device". What is not named is not divided. Free has no such form: it is a placement.
func Parse(text string) (Strategy, error) {
	s := Single(1)
	parts := strings.Fields(text)
	if text == "one device" {
		parts = nil
	}
	seen := map[string]bool{}
	experts, tokens := false, false // all replicas share them out
	for _, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		axis := name
		switch sharding, schedule := index(shardingNames[:], name), index(scheduleNames[:], name); {
		case part == "recompute=selective":
			s.Recompute = RecomputeSelective
		case part == "recompute":
			s.Recompute = RecomputeLayers
		case part == "sp":
			s.Sequence = true
		case part == "ep":
			experts = true
		case part == "cp":
			tokens = true
		case part == "vocab":
			s.Vocabulary = true
		default:
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 {
				return Strategy{}, fmt.Errorf("strategy %q: %q is not of the form name=number", text, part)
			}
			switch {
			case sharding >= 0:
				axis, s.Sharding, s.Data = "data", Sharding(sharding), n
			case schedule >= 0 && Schedule(schedule) <= Interleaved:
				axis, s.Schedule, s.Pipeline = "pipeline", Schedule(schedule), n
			case name == "chunks":
				s.Chunks = n
			case name == "tp":
				s.Tensor = n
			case name == "ep":
				s.Experts = n
			case name == "cp":
				s.Context = n
			case name == "mb":
				s.MicroBatches = n
			default:
				return Strategy{}, fmt.Errorf("strategy %q: unknown part %q, want ddp, zero-1, zero-2, zero-3, gpipe, 1f1b, interleaved, chunks, tp, ep, cp, mb, each with =N, ep, cp, vocab, sp, recompute or recompute=selective", text, name)
			}
		}
		if seen[axis] {
			return Strategy{}, fmt.Errorf("strategy %q: %s is said twice", text, axis)
		}
		seen[axis] = true
	}
	if experts {
		s.Experts = s.Data
	}
	if tokens {
		s.Context = s.Data
	}
	if err := s.Validate(); err != nil {
		return Strategy{}, fmt.Errorf("strategy %q: %w", text, err)
	}
	return s, nil
}

// index returns where name is in names, -1 where it is not.
func index(names []string, name string) int {
	for k, n := range names {
		if n == name {
			return k
		}
	}
	return -1
}
