package cli

import "math"

// sparkline draws how the best plan's value falls over the budget, as one row of blocks:
// each stands for an equal share of the budget and is as high as the best value was at
// its end, between the best of all and the first.
type sparkline struct {
	best []float64 // by column; NaN where nothing was known yet
}

// sparks are the blocks, from the best to the first.
var sparks = []rune("▁▂▃▄▅▆▇█")

// sparkColumns is how wide a sparkline is.
const sparkColumns = 16

// add notes that when this share of the budget was used the best value was v.
func (s *sparkline) add(share, v float64) {
	at := int(share * sparkColumns)
	if v <= 0 || at < 0 {
		return
	}
	at = min(at, sparkColumns-1)
	for len(s.best) <= at {
		last := math.NaN()
		if n := len(s.best); n > 0 {
			last = s.best[n-1]
		}
		s.best = append(s.best, last)
	}
	s.best[at] = v
}

// String returns the blocks so far; the scale is logarithmic.
func (s *sparkline) String() string {
	low, high := math.Inf(1), 0.0
	for _, v := range s.best {
		if !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	text := make([]rune, 0, sparkColumns)
	for _, v := range s.best {
		switch {
		case math.IsNaN(v):
			text = append(text, ' ')
		case high <= low:
			text = append(text, sparks[0])
		default:
			share := math.Log(v/low) / math.Log(high/low)
			text = append(text, sparks[min(len(sparks)-1, int(share*float64(len(sparks)-1)+0.5))])
		}
	}
	return string(text)
}
