package serving

import (
	"errors"

	"placer/graph/strategy"
	"placer/internal/faults"
)

// Load is what clients ask for: requests of one length that never stop.
type Load struct {
	Prompt, Output int64 // tokens of a request and of its answer
	// Cached are the tokens of a prompt, its first, whose keys and values the replica has from other
	// requests: a system prompt, the turns before.
	Cached int64
	TTFT   float64 // most seconds to the first token; 0: any number
	TPOT   float64 // most seconds between two tokens, in the mean; 0: any number
}

// MostTokens bounds prompts and answers.
const MostTokens = 1 << 20

// Validate reports every fault.
func (l Load) Validate() error {
	var errs faults.List
	errs.If(l.Prompt < 1 || l.Prompt > MostTokens, "a prompt of %d tokens, want 1 to %d", l.Prompt, MostTokens)
	errs.If(l.Output < 1 || l.Output > MostTokens, "an answer of %d tokens, want 1 to %d", l.Output, MostTokens)
	errs.If(l.Cached < 0 || l.Cached >= max(1, l.Prompt), "%d tokens of a prompt of %d are cached, want none or fewer than it has", l.Cached, l.Prompt)
	errs.If(!(l.TTFT >= 0) || !(l.TPOT >= 0), "times of %g and %g s to a token, want none below 0", l.TTFT, l.TPOT)
	return errors.Join(errs...)
}

// past returns the tokens behind which a sequence decodes one, in the mean over its answer.
func (l Load) past() int64 { return l.Prompt + l.Output/2 }

// tokensAtOnce is about how many tokens of prompts a server reads in a step, for each replica that attends:
// max_num_tokens of TensorRT-LLM, max_num_batched_tokens of vLLM on GPUs of much memory.
const tokensAtOnce = 8192

// together returns how many prompts a step reads: those that arrive while batch sequences decode a token
// each, no more than a server reads at once, and as many as s divides evenly.
func (l Load) together(batch int64, s strategy.Strategy) int64 {
	return max(min(batch/l.Output, l.atOnce(s))/unit(s)*unit(s), int64(s.Data))
}

// atOnce returns how many prompts a server reads in a step at most under s.
func (l Load) atOnce(s strategy.Strategy) int64 {
	return max(1, tokensAtOnce/(l.Prompt-l.Cached)) * int64(s.Data)
}
