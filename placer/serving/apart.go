package serving

import (
	"context"
	"errors"
	"math"

	"placer/graph"
	"placer/graph/strategy"
	"placer/units"
)

// Apart is replicas that read prompts and others that decode, on devices of their own, so that neither
// step waits for the other (Zhong et al., DistServe, OSDI 2024, arXiv:2401.09670; Patel et al., Splitwise,
// ISCA 2024, arXiv:2311.18677).
type Apart struct {
	Read, Decode            Row // of a replica; Batch of Read are the prompts of a step
	Readers, Decoders       int // replicas
	Keys                    units.Bytes
	Transfer                float64 // seconds that keys and values of a prompt, Keys, take from replica to replica
	Rate                    float64 // requests a second of all
	readerRate, decoderRate float64 // of a replica, transfers included
}

// Devices returns how many there are of all replicas.
func (a *Apart) Devices() int { return a.Readers*a.Read.Devices + a.Decoders*a.Decode.Devices }

// TTFT returns the seconds to the first token of a request that arrives as a step that reads others has
// begun.
func (a *Apart) TTFT() float64 { return a.Read.TTFT }

// TPOT returns the seconds between two tokens of a sequence in the mean over its answer: between the first
// and the second its keys and values cross.
func (a *Apart) TPOT(answer int64) float64 { return a.Decode.TPOT + a.Transfer/float64(answer-1) }

// ErrNotApart says that answers are one token, which reading the prompt brings.
var ErrNotApart = errors.New("answers of one token need no decoding")

// Apart returns the replicas of each kind that serve the most on the machine, or, where rate requests a
// second are asked for, with the fewest devices; nil where none keep to the limits, or ctx ended. It tells of
// the rows of each kind as Rows does.
func (p *Planner) Apart(ctx context.Context, rate float64, reads, decodes func(*Row)) (*Apart, error) {
	if p.Output == 1 {
		return nil, ErrNotApart
	}
	n := len(p.Machine.Ranks())
	if n < 2 && rate == 0 {
		return nil, nil
	}
	keys, err := p.keys()
	if err != nil {
		return nil, err
	}
	readers := p.search(ctx, judge{p.reading, func(s strategy.Strategy) sizes { return sizes{int64(s.Data), p.atOnce(s)} }, ByTokens}, reads)
	decoders := p.search(ctx, judge{p.decoding, p.sequences, ByServer}, decodes)
	if ctx.Err() != nil {
		return nil, nil
	}
	var best *Apart
	for _, r := range readers {
		for _, d := range decoders {
			if r.Why != "" || d.Why != "" {
				continue
			}
			a := &Apart{Read: r, Decode: d, Keys: keys, Transfer: p.transfer(keys, min(r.Devices, d.Devices))}
			if p.TPOT > 0 && a.TPOT(p.Output) > p.TPOT {
				continue
			}
			a.readerRate, a.decoderRate = min(r.Rate, 1/a.Transfer), min(d.Rate, 1/a.Transfer)
			if a.divide(n, rate) && (best == nil || a.better(best, rate)) {
				best = a
			}
		}
	}
	return best, nil
}

// divide says how many replicas of each kind n devices have so that all together serve the most, or how
// many serve rate; false where n are too few.
func (a *Apart) divide(n int, rate float64) bool {
	if rate > 0 {
		a.Readers, a.Decoders, a.Rate = int(math.Ceil(rate/a.readerRate)), int(math.Ceil(rate/a.decoderRate)), rate
		return true
	}
	for readers := 1; readers*a.Read.Devices < n; readers++ {
		decoders := (n - readers*a.Read.Devices) / a.Decode.Devices
		if x := min(float64(readers)*a.readerRate, float64(decoders)*a.decoderRate); x > a.Rate {
			a.Readers, a.Decoders, a.Rate = readers, decoders, x
		}
	}
	return a.Rate > 0
}

func (a *Apart) better(b *Apart, rate float64) bool {
	if rate > 0 {
		return a.Devices() < b.Devices()
	}
	return a.Rate > gain*b.Rate
}

// reading returns what a replica comes to that reads so many prompts in a step and decodes nothing.
func (p *Planner) reading(ctx context.Context, s strategy.Strategy, prompts int64) (Row, error) {
	x, err := p.simulate(ctx, false, s, prompts, p.Prompt-p.Cached, p.Cached)
	if err != nil {
		return Row{}, err
	}
	r := Row{Strategy: s, Devices: s.Ranks(), Batch: prompts, Prompts: prompts, Prefill: x.seconds, TTFT: x.every + x.seconds, Rate: float64(prompts) / x.every}
	return p.within(r, func(d int) units.Bytes { return x.peak[d] })
}

// decoding returns what a replica comes to that decodes so many sequences and reads no prompt.
func (p *Planner) decoding(ctx context.Context, s strategy.Strategy, batch int64) (Row, error) {
	x, err := p.simulate(ctx, true, s, batch, 1, p.past())
	if err != nil {
		return Row{}, err
	}
	r := Row{Strategy: s, Devices: s.Ranks(), Batch: batch, Decode: x.every, TPOT: x.every, Rate: float64(batch) / (float64(p.Output-1) * x.every)}
	return p.within(r, func(d int) units.Bytes { return x.peak[d] })
}

// keys returns the bytes that reading a prompt leaves for decoding: the keys and values, or the state, of
// its tokens that were not cached.
func (p *Planner) keys() (units.Bytes, error) {
	held := func(batch, past int64) (b units.Bytes, err error) {
		g, err := p.model(batch, 1, past)
		if err != nil {
			return 0, err
		}
		for i := range g.NumOps() {
			b += g.Op(graph.OpID(i)).Resident
		}
		return b, nil
	}
	of := func(past int64) (units.Bytes, error) { // what one sequence more holds
		one, err := held(1, past)
		two, err2 := held(2, past)
		return two - one, errors.Join(err, err2)
	}
	whole, err := of(p.Prompt)
	if err != nil || p.Cached == 0 {
		return whole, err
	}
	cached, err := of(p.Cached)
	return whole - cached, err
}

// transfer returns the seconds that b bytes take from a replica to another, divided among so many pairs of
// devices, between the first and the last of the machine.
func (p *Planner) transfer(b units.Bytes, pairs int) float64 {
	ranks := p.Machine.Ranks()
	src, dst := ranks[0], ranks[len(ranks)-1]
	if src == dst || b == 0 {
		return 0
	}
	return float64(p.Machine.TransferSeconds(src, dst, b/units.Bytes(pairs)))
}
