package roofline

import (
	"math"

	"placer/graph"
	"placer/units"
)

// AttentionParams are the constants of attention in one kernel for one architecture: what share
// of the peak rate of products a long sequence reaches, (0,1].
type AttentionParams struct {
	Forward float64
	// Score is how many operations of the vector units come on top for each score: maximum,
	// exponential and sum, as far as products do not hide them.
	Score float64
	// Backward is for the gradient, where products are most of it.
	Backward float64
}

// Blocks of FlashAttention-2: a multiprocessor has a block of so many queries, or of fewer where
// there are fewer, and meets keys in blocks; a gradient has its turns the other way round.
const (
	attentionBlock = 128
	leastQueries   = 64
	keyBlock       = 64
	// leastKeys is the least number of keys of a part, where those of few queries are shared
	// out among multiprocessors (Flash-Decoding).
	leastKeys = 256
)

// attention returns the time of the arithmetic of o, attention in one kernel, without launch and
// fixed time; vector is the rate of vector units. Blocks run in waves, as tiles of products do, and start and end as these do (q).
// Before and behind the kernel of a gradient others pass over the output, its gradient and the
// queries' gradient, which is summed up in f32, at bandwidth.
func (p *Params) attention(o *graph.Op, rate, vector units.FLOPsPerSecond, q *GEMMParams, sms int, bandwidth units.BytesPerSecond) units.Seconds {
	m, a := o.GEMM, p.attentionParams()
	perSM := float64(rate) / float64(sms)
	wave := func(blocks float64) float64 { // how many waves so many blocks are
		x := blocks / float64(sms)
		return max(1, x+q.Tail*(math.Ceil(x)-x))
	}
	up := func(x int64, block float64) float64 { return math.Ceil(float64(x)/block) * block }
	if o.Kind == graph.AttentionGrad {
		columns := float64(m.K) / 5
		blocks := float64(m.Batch) * math.Ceil(float64(m.N)/attentionBlock)
		block := 2*attentionBlock*up(m.M, keyBlock)*float64(m.K)/(perSM*a.Backward) + float64(q.Ends)
		passes := float64(m.Batch*m.M) * columns * float64(3*o.DType.Size()+2*4)
		return units.Seconds(wave(blocks)*block + passes/float64(bandwidth))
	}
	rows := float64(attentionBlock)
	if m.M <= leastQueries {
		rows = leastQueries
	}
	blocks := float64(m.Batch) * math.Ceil(float64(m.M)/rows)
	perKey := rows * (2*float64(m.K)/(perSM*a.Forward) + a.Score*float64(sms)/float64(vector))
	best := math.Inf(1)
	for _, parts := range splits {
		keys := float64(m.N) / parts
		if parts > 1 && (m.M > leastQueries || keys < leastKeys || blocks*parts > 2*float64(sms)) {
			break
		}
		best = min(best, wave(blocks*parts)*(perKey*math.Ceil(keys/keyBlock)*keyBlock+float64(q.Ends)))
	}
	return units.Seconds(best)
}

// attentionParams returns the constants of attention, assumed where there are none.
func (p *Params) attentionParams() AttentionParams {
	if p.Attention == (AttentionParams{}) {
		return flash
	}
	return p.Attention
}
