package serving

// cycle is what the steps of a replica come to: while its B sequences decode their answers, B
// others arrive and have their prompts read.
type cycle struct {
	load    Load
	batch   int64   // B
	prompts int64   // k of a step
	decode  float64 // seconds from a step of B tokens to the next
	prefill float64 // seconds from a step of k prompts to the next
	latency float64 // seconds of such a step from its first op to its last, a pipeline's stages all
}

// seconds returns how long a cycle takes: O-1 steps decode, since reading a prompt brings the
// first token.
func (c *cycle) seconds() float64 {
	return float64(c.load.Output-1)*c.decode + float64(c.batch)/float64(c.prompts)*c.prefill
}

// rate returns requests a second.
func (c *cycle) rate() float64 { return float64(c.batch) / c.seconds() }

// tpot returns the seconds between two tokens of a sequence in the mean, with the prompts of others
// that are read between them; 0 where an answer is one token.
func (c *cycle) tpot() float64 {
	if c.load.Output == 1 {
		return 0
	}
	return c.seconds() / float64(c.load.Output-1)
}

// ttft returns the seconds to the first token of a request that finds room and arrives as a step has begun.
func (c *cycle) ttft() float64 {
	if c.load.Output == 1 {
		return c.latency
	}
	return c.decode + c.latency
}
