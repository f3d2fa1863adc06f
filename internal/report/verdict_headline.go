package report

import (
	"fmt"
	"slices"
	"strings"

	"placer/graph"
	"placer/hw"
	"placer/internal/words"
	"placer/placer/verdict"
)

// say adds the sentences of a machine, whose answers are for up to most devices; left says that
// there was no time for other counts.
func (v *Verdict) say(x *verdict.Machine, answers []verdict.Answer, c verdict.Conclusion, most int, left bool) {
	add := func(format string, a ...any) { v.Headline = append(v.Headline, fmt.Sprintf(format, a...)) }
	if c.Best < 0 {
		add("%s: no plan that was found fits.", x.Name)
		return
	}
	best, fewest := &answers[c.Best], &answers[c.Fewest]
	rate := func(a *verdict.Answer) string {
		if v.Batch > 0 {
			return fmt.Sprintf("%.4g samples/s", a.Rate(v.Batch))
		}
		return fmt.Sprintf("%.4g steps/s", 1/a.Score.Value)
	}
	faster := func(a *verdict.Answer) float64 { return 100 * (a.Score.Value/best.Score.Value - 1) }
	over := func(a *verdict.Answer) string {
		if c.One < 0 || a.Devices == 1 {
			return ""
		}
		one := &answers[c.One]
		return fmt.Sprintf(", %.2f times one %s (%s)", one.Score.Value/a.Score.Value, one.Kind(), rate(one))
	}
	switch {
	case c.Enough && most == 1 && left:
		add("%s: one %s does %s; other counts have not been judged.", x.Name, best.Kind(), rate(best))
	case c.Enough && most == 1:
		add("%s: one %s does %s; no other count was asked for.", x.Name, best.Kind(), rate(best))
	case c.Enough && c.Best == c.One:
		add("%s: one %s is enough: %s, and no plan found for up to %d is faster.", x.Name, best.Kind(), rate(best), most)
	case c.Enough:
		one := &answers[c.One]
		add("%s: one %s is enough: %s; %s are %.1f%% faster.", x.Name, one.Kind(), rate(one), count(best), faster(one))
	case c.Fewest != c.Best:
		add("%s: %s are enough: %s%s; %s are %.1f%% faster.", x.Name, count(fewest), rate(fewest), over(fewest), count(best), faster(fewest))
	default:
		add("%s: fastest with %s: %s%s.", x.Name, count(best), rate(best), over(best))
	}
	if len(c.Ties) > 0 {
		tied := []int{best.Devices}
		for _, k := range c.Ties {
			tied = append(tied, answers[k].Devices)
		}
		slices.Sort(tied)
		words := make([]string, len(tied))
		for k, n := range tied {
			words[k] = fmt.Sprint(n)
		}
		last := len(words) - 1
		add("%s: %s and %s devices are a tie: their steps differ by no more than the model's error, %.1f%%.", x.Name, strings.Join(words[:last], ", "), words[last], 100*x.Error.Share)
	}
}

// lack adds what a plan for some devices lacks.
func (v *Verdict) lack(x *verdict.Machine, a *verdict.Answer) {
	s := fmt.Sprintf("%s: %s not fit: the best plan lacks %v (%d bytes)", x.Name, countDoes(a), a.Score.Overflow, int64(a.Score.Overflow))
	if a.AtLeast > 0 {
		s += fmt.Sprintf(", any plan at least %v", a.AtLeast)
	}
	v.Headline = append(v.Headline, s+".")
}

func count(a *verdict.Answer) string {
	return words.Count(a.Devices, a.Kind(), a.Kind()+"s")
}

func countDoes(a *verdict.Answer) string {
	return words.Count(a.Devices, a.Kind()+" does", a.Kind()+"s do")
}

// cheapest says which row costs least, where prices are known.
func (v *Verdict) cheapest() {
	var best *verdictRow
	for k := range v.Rows {
		if r := &v.Rows[k]; r.PerMillion != nil && (best == nil || *r.PerMillion < *best.PerMillion) {
			best = r
		}
	}
	if best != nil {
		v.Headline = append(v.Headline, fmt.Sprintf("Cheapest: %d x %s, %s per million samples.", best.Devices, best.Machine, money(*best.PerMillion)))
	}
}

func money(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}

// taken says in which order the devices of m count, where they differ.
func taken(m *hw.Machine) string {
	var parts []string
	for i, n := 0, 0; i < m.NumDevices(); i += n {
		d := &m.Devices[i]
		for n = 1; i+n < m.NumDevices() && m.Devices[i+n].Model == d.Model; n++ {
		}
		if n > 1 {
			parts = append(parts, fmt.Sprintf("%d x %s", n, d.Model))
		} else {
			parts = append(parts, fmt.Sprintf("%s (%s)", d.Model, d.Name))
		}
	}
	if len(parts) < 2 {
		return ""
	}
	return fmt.Sprintf("%s: its devices count in the order %s.", m.Name, strings.Join(parts, ", "))
}

// arithmetic says in what element types g computes on the first device of x, and at which
// peak rates; types of less than a hundredth are left out.
func arithmetic(g *graph.Graph, x *verdict.Machine) string {
	d, total := &x.Devices[0], float64(g.FLOPs())
	tf32, fast := d.Peak[graph.TF32.String()]
	var parts []string
	for _, a := range verdict.ArithmeticOf(g, d) {
		share := float64(a.FLOPs) / total
		if share < 0.01 {
			break
		}
		s := fmt.Sprintf("%.0f%% in %v, %v", 100*share, a.Type, a.Peak)
		if fast && float64(a.Precise) > 0.01*total {
			s += fmt.Sprintf(" (products that ask for all bits of f32; tf32 has %v)", tf32)
		}
		parts = append(parts, s)
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("FLOPs on %s, with the peak rate of %s: %s.", x.Name, d.Model, strings.Join(parts, "; "))
}
