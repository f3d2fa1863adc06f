package cli

import (
	"fmt"
	"io"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"placer/internal/words"
	"placer/placer/search"
	"placer/plan"
	"placer/units"
)

// progress shows how a search goes: a bar under the lines on a terminal, lines
// alone elsewhere, nothing when quiet.
type progress struct {
	out       io.Writer
	total     plan.Budget
	objective plan.Objective
	every     float64 // seconds between lines of one method
	quiet     bool
	bars      *mpb.Progress
	bar       *mpb.Bar
	mu        sync.Mutex // guards text: the bar is drawn by a goroutine of its own
	text      string
	best      plan.Score
	some      bool               // best is set
	told      map[string]float64 // by method: when its last line was written
	counts    map[string]int     // by method: evaluations under a budget in evaluations
	spark     sparkline
	colours   bool
}

func (c *console) newProgress(total plan.Budget) *progress {
	p := &progress{out: c.err, total: total, every: 5, quiet: c.quiet, told: map[string]float64{}, counts: map[string]int{}}
	if c.verbose {
		p.every = 0.5
	}
	p.colours = colourful(c.err)
	if !c.quiet && isTerminal(c.err) {
		p.bars = mpb.New(mpb.WithOutput(c.err))
		p.out = p.bars
		p.bar = p.bars.AddBar(1000, mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { p.mu.Lock(); defer p.mu.Unlock(); return p.text })),
			mpb.AppendDecorators(decor.Percentage()))
	}
	return p
}

// line writes one line above the bar.
func (p *progress) line(format string, a ...any) {
	if !p.quiet {
		fmt.Fprintf(p.out, format+"\n", a...)
	}
}

// event writes the line of an event: when, which method, and what in that colour.
func (p *progress) event(e search.Event, colour, format string, a ...any) {
	what := fmt.Sprintf(format, a...)
	if colour != "" {
		what = paint(p.colours, colour, what)
	}
	p.line("%s  %-12s %s", paint(p.colours, faint, fmt.Sprintf("%7.1f s", e.Seconds)), e.Method, what)
}

// observe shows an event of a search.
func (p *progress) observe(e search.Event) {
	better := e.Device != nil && (!p.some || e.Score.Better(p.best))
	first := better && e.Score.Feasible() && !(p.some && p.best.Feasible())
	if better {
		p.best, p.some = e.Score, true
	}
	switch {
	case e.What == search.Recalled:
		p.event(e, "", "kept from before: %s after %s", p.score(e.Score), words.Count(e.Evaluations, "evaluation", "evaluations"))
	case first:
		p.event(e, green, "first feasible plan: %s", p.score(e.Score))
	case e.What == search.Ended:
		p.event(e, "", "done: %s after %s", p.score(e.Score), words.Count(e.Evaluations, "evaluation", "evaluations"))
	case e.What == search.Skipped:
		p.event(e, yellow, "unavailable: %s", e.Reason)
	case e.What == search.Progress && e.Seconds-p.told[e.Method] >= p.every:
		p.event(e, "", "%s after %s", p.score(e.Score), words.Count(e.Evaluations, "evaluation", "evaluations"))
	case e.What == search.Smaller:
		if _, said := p.told[e.Method]; !said {
			p.event(e, "", "a budget in evaluations is that of each number of GPUs: now fewer,")
			p.event(e, "", "each with a budget of %s anew: more are never worse", words.Count(e.Budget.Evaluations, "evaluation", "evaluations"))
		}
		p.event(e, "", "searching on %s GPUs", e.Reason)
	case e.What == search.Started:
	default:
		p.draw(e)
		return
	}
	p.told[e.Method] = e.Seconds
	p.draw(e)
}

// draw brings the bar, where there is one, and the text beside it up to e.
func (p *progress) draw(e search.Event) {
	share := 0.0
	if p.total.Seconds > 0 {
		share = e.Seconds / p.total.Seconds
	} else if e.Kind != plan.Baseline {
		p.counts[e.Method] = e.Evaluations
		done := 0
		for _, n := range p.counts {
			done += n
		}
		share = float64(done) / float64(p.total.Evaluations)
	}
	if p.some && p.best.Feasible() {
		p.spark.add(share, p.best.Value)
	}
	p.mu.Lock()
	p.text = fmt.Sprintf("%5.0f s  best %s %s ", e.Seconds, p.score(p.best), paint(p.colours, cyan, p.spark.String()))
	if !p.some {
		p.text = fmt.Sprintf("%5.0f s ", e.Seconds)
	}
	p.mu.Unlock()
	if p.bar != nil {
		p.bar.SetCurrent(min(999, int64(1000*share)))
	}
}

// close takes the bar off the screen.
func (p *progress) close() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bars.Wait()
	}
}

func (p *progress) score(s plan.Score) string {
	value := units.Seconds(s.Value).String()
	if p.objective.Normal() == plan.Memory {
		value = units.Bytes(s.Value).String()
	}
	if !s.Feasible() {
		return fmt.Sprintf("%s, %s too much memory", value, s.Overflow)
	}
	return value
}
