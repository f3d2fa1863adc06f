package verdict

import "placer/hw"

// Tolerance is how far from the best step fewer devices may be and still be enough.
const Tolerance = 0.05

// shown is the share below which a step counts as equal to a longer one: gains are printed to a tenth
// of a percent, and one of none is no reason to use more devices.
const shown = 0.0005

// Conclusion is what the answers of one machine come to. Indices are into the answers,
// -1 for none.
type Conclusion struct {
	Best   int // the shortest step that fits; of equal ones, but for shown, that on the fewest devices
	Fewest int // the fewest devices whose step is within Tolerance of the best
	One    int // the answer for one device that fits
	// Ties are the answers, beside the best, whose steps differ from its by no more than
	// the model's error: they cannot be told apart.
	Ties []int
	// Enough says that one device is: its step is within Tolerance of the best, or tied
	// with it.
	Enough bool
}

// Conclude says what the answers for machine m come to.
func Conclude(answers []Answer, m int, e ModelError) Conclusion {
	c := Conclusion{Best: -1, Fewest: -1, One: -1}
	for k := range answers {
		a := &answers[k]
		if a.Machine != m || !a.Score.Feasible() {
			continue
		}
		if c.Best < 0 || a.Score.Value < answers[c.Best].Score.Value {
			c.Best = k
		}
		if a.Devices == 1 {
			c.One = k
		}
	}
	if c.Best < 0 {
		return c
	}
	shortest := answers[c.Best].Score.Value
	for k := range answers {
		a := &answers[k]
		if a.Machine == m && a.Score.Feasible() && a.Score.Value <= (1+shown)*shortest && a.Devices < answers[c.Best].Devices {
			c.Best = k
		}
	}
	best := answers[c.Best].Score.Value
	for k := range answers {
		a := &answers[k]
		if a.Machine != m || !a.Score.Feasible() {
			continue
		}
		if c.Fewest < 0 && a.Score.Value <= (1+Tolerance)*best {
			c.Fewest = k
		}
		if k != c.Best && Tied(a.Score.Value, best, e) {
			c.Ties = append(c.Ties, k)
		}
	}
	c.Enough = c.One >= 0 && (c.Fewest == c.One || Tied(answers[c.One].Score.Value, best, e))
	return c
}

// Tied reports whether two steps differ by no more than the model's error.
func Tied(a, b float64, e ModelError) bool { return max(a, b) <= (1+e.Share)*min(a, b) }

// Rate returns samples a second of a, for a step of batch samples.
func (a *Answer) Rate(batch float64) float64 { return batch / a.Score.Value }

// Efficiency returns the speed of a over that of one, each for what it takes: 1 where d
// devices are d times as fast.
func (a *Answer) Efficiency(one *Answer) float64 {
	return one.Score.Value / a.Score.Value / float64(a.Devices)
}

// PerMillion returns the cost of a million samples at price an hour, for a step of
// batch samples.
func (a *Answer) PerMillion(batch, price float64) float64 {
	return price / 3600 * a.Score.Value / batch * 1e6
}

// Kind returns what the devices of a are: "GPU", "CPU" or, for both, "device".
func (a *Answer) Kind() string {
	kind := a.On.Devices[0].Kind
	for i := range a.On.Devices {
		if a.On.Devices[i].Kind != kind {
			return "device"
		}
	}
	if kind == hw.CPU {
		return "CPU"
	}
	return "GPU"
}

// Pareto returns those of the plans of all answers of which none is at least as good in
// step, memory and devices, and better in one: by devices, then by step. Of equal ones
// the first stays.
func Pareto(answers []Answer) (front []Point) {
	var all []Point
	for k := range answers {
		all = append(all, answers[k].Seen...)
	}
	for i, p := range all {
		beaten := false
		for j, q := range all {
			no := q.Step > p.Step || q.Memory > p.Memory || q.Devices > p.Devices
			same := q.Step == p.Step && q.Memory == p.Memory && q.Devices == p.Devices
			if !no && (!same || j < i) {
				beaten = true
				break
			}
		}
		if !beaten {
			front = append(front, p)
		}
	}
	sortPoints(front)
	return front
}
