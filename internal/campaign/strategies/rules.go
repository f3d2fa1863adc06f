package strategies

import (
	"context"
	"fmt"
	"math"
	"slices"

	"placer/graph"
	"placer/graph/strategy"
	"placer/hw"
	"placer/placer/problem"
	"placer/placer/strategies"
	"placer/plan"
	"placer/units"
)

// Slacks of what is true but for the order in which a simulator's queues are served (Graham's
// anomalies), and of kernels, which are the more efficient the more they do.
const (
	slackOrder   = 0.005 // of the best row's time
	slackRow     = 0.03  // of one row's, in which less is chosen from
	slackWork    = 0.1   // by which devices together may be quicker than one alone
	slackMemory  = 0.05  // more is under way at once where what is sent arrives sooner
	slackReverse = 0.002 // fused ops depend on the order of equals
)

// Rows returns the rows of c's model at a batch on m, or of one strategy alone.
func (c *Case) Rows(ctx context.Context, m *hw.Machine, batch int64, workers int, s *strategy.Strategy) ([]strategies.Row, error) {
	f := c.Family()
	g, err := f(batch)
	if err != nil {
		return nil, err
	}
	x, err := strategies.NewComparison(problem.Source{Graph: g}, f, m, strategies.Config{
		Batch: batch, Eager: c.Eager, OneShot: c.OneShot, Workers: workers, Seed: c.Seed, Strategy: s,
		Budget: plan.Budget{Evaluations: 3}, Clock: func() float64 { return 0 },
	})
	if err != nil {
		return nil, err
	}
	return x.Rows(ctx, nil), nil
}

// judged is a case under its rules.
type judged struct {
	*Case
	ctx    context.Context
	rows   []strategies.Row
	best   *strategies.Row
	faults []string
}

func (x *judged) fault(format string, a ...any) {
	x.faults = append(x.faults, fmt.Sprintf(format, a...))
}

// Faults holds c to what must be true of it and returns what is not, and how many rows came out.
func (c *Case) Faults(ctx context.Context) (faults []string, rows int, err error) {
	x := &judged{Case: c, ctx: ctx}
	if x.rows, err = c.Rows(ctx, c.Machine, c.Batch, 1, nil); err != nil {
		return nil, 0, err
	}
	if x.best = strategies.Best(x.rows); x.best == nil {
		return []string{"there is no row, not even of one device"}, 0, nil
	}
	several, err := c.Rows(ctx, c.Machine, c.Batch, 3, nil)
	if err != nil {
		return nil, 0, err
	}
	if a, b := tell(x.rows), tell(several); a != b {
		x.fault("with one worker\n%s\nwith three\n%s", a, b)
	}
	for _, rule := range []func() error{x.alone, x.more, x.reversed} {
		if err := rule(); err != nil {
			return nil, 0, err
		}
	}
	return x.faults, len(x.rows), nil
}

// alone holds each row to its own figures, to the same strategy asked for by name, and to what one
// device does without end of memory: no work and no parameter is lost.
func (x *judged) alone() error {
	single := strategy.Single(1)
	one, err := x.Rows(x.ctx, scaled(x.Machine, 1e6, 1, 1).Keep([]int{0}), x.Batch, 1, &single)
	if err != nil {
		return err
	}
	if one[0].Result == nil {
		return fmt.Errorf("one device: %s", one[0].Why)
	}
	g, err := x.Family()(x.Batch)
	if err != nil {
		return err
	}
	held := units.Bytes(0)
	for i := range graph.OpID(g.NumOps()) {
		held += g.Op(i).Resident
	}
	for k := range x.rows {
		r := &x.rows[k]
		if r.Result == nil {
			continue
		}
		copies := units.Bytes(1) // of each rank that is simulated
		if slices.Contains(r.Peak, 0) {
			copies = units.Bytes(r.Strategy.Data * r.Strategy.Tensor)
		}
		over, sum := units.Bytes(0), units.Bytes(0)
		for d, p := range r.Peak {
			over, sum = over+max(0, p-x.Machine.Devices[d].Memory), sum+p
		}
		if over*copies != r.Overflow {
			x.fault("%s: its devices lack %v", tell(x.rows[k:k+1]), over*copies)
		}
		if sum*copies < held {
			x.fault("%s: its devices hold %v of the model's %v", tell(x.rows[k:k+1]), sum*copies, held)
		}
		if n := float64(x.Machine.NumDevices()); r.Seconds*n < one[0].Seconds*(1-slackWork) {
			x.fault("%s: one device takes %g s", tell(x.rows[k:k+1]), one[0].Seconds)
		}
		if r.Name == strategies.NamePlacement {
			continue
		}
		if s, err := strategy.Parse(r.Strategy.String()); err != nil || s != r.Strategy {
			x.fault("%v is read as %v (%v)", r.Strategy, s, err)
		}
		asked, err := x.Rows(x.ctx, x.Machine, x.Batch, 1, &r.Strategy)
		if err != nil {
			return err
		}
		a := &asked[0]
		if a.Result == nil || a.Seconds != r.Seconds || a.Overflow != r.Overflow || !slices.Equal(a.Peak, r.Peak) || a.Traffic != r.Traffic {
			x.fault("%s: asked for, %s", tell(x.rows[k:k+1]), tell(asked))
		}
	}
	return nil
}

// more compares with the same model on machines that have more of one thing, and with twice the
// batch where memory has no end: nothing is slower, or stops to fit.
func (x *judged) more() error {
	for _, other := range []struct {
		name  string
		m     *hw.Machine
		batch int64
	}{
		{"twice the bandwidth", scaled(x.Machine, 1, 2, 1), x.Batch},
		{"half the latency", scaled(x.Machine, 1, 1, 0.5), x.Batch},
		{"half as much memory again", scaled(x.Machine, 1.5, 1, 1), x.Batch},
		{"twice the batch", scaled(x.Machine, 1e6, 1, 1), 2 * x.Batch},
	} {
		rows, err := x.Rows(x.ctx, other.m, other.batch, 2, nil)
		if err != nil {
			return err
		}
		b, factor := strategies.Best(rows), float64(other.batch)/float64(x.Batch)
		switch {
		case x.best.Overflow == 0 && b.Overflow > 0:
			x.fault("with %s %s does not fit, %s did", other.name, tell([]strategies.Row{*b}), tell([]strategies.Row{*x.best}))
		case float64(b.Overflow) > float64(x.best.Overflow)*(1+slackMemory):
			x.fault("with %s %s lacks more than %s", other.name, tell([]strategies.Row{*b}), tell([]strategies.Row{*x.best}))
		case x.best.Overflow > 0:
			continue
		case b.Seconds > factor*x.best.Seconds*(1+slackOrder):
			x.fault("with %s %s, %s before", other.name, tell([]strategies.Row{*b}), tell([]strategies.Row{*x.best}))
		}
		for k := range min(len(rows), len(x.rows)) {
			a, b := &x.rows[k], &rows[k]
			if a.Name == b.Name && a.Result != nil && b.Result != nil && a.Overflow == 0 && b.Overflow == 0 && b.Seconds > factor*a.Seconds*(1+slackRow) {
				x.fault("with %s %s, %s before", other.name, tell(rows[k:k+1]), tell(x.rows[k:k+1]))
			}
		}
	}
	return nil
}

// reversed holds rows on equal devices to those with the devices in reverse order.
func (x *judged) reversed() error {
	var back []int
	for d := range x.Machine.Devices {
		if !x.Machine.Devices[d].SameFigures(&x.Machine.Devices[0]) {
			return nil
		}
		back = append([]int{d}, back...)
	}
	rows, err := x.Rows(x.ctx, x.Machine.Keep(back), x.Batch, 2, nil)
	if err != nil {
		return err
	}
	for k := range rows {
		a, b := &x.rows[k], &rows[k]
		if (a.Result == nil) != (b.Result == nil) || a.Result != nil && (math.Abs(a.Seconds/b.Seconds-1) > slackReverse || a.Overflow != b.Overflow) {
			x.fault("%s, with devices in reverse order %s", tell(x.rows[k:k+1]), tell(rows[k:k+1]))
		}
	}
	return nil
}

// scaled returns m with so many times the memory of each device, and the bandwidth and the latency of
// each link.
func scaled(m *hw.Machine, memory, bandwidth, latency float64) *hw.Machine {
	x := *m
	x.Devices, x.Links = slices.Clone(m.Devices), slices.Clone(m.Links)
	for k := range x.Devices {
		x.Devices[k].Memory = units.Bytes(float64(x.Devices[k].Memory) * memory)
	}
	for k := range x.Links {
		l := &x.Links[k]
		l.Bandwidth, l.CollectiveBandwidth = l.Bandwidth*units.BytesPerSecond(bandwidth), l.CollectiveBandwidth*units.BytesPerSecond(bandwidth)
		l.Latency *= units.Seconds(latency)
	}
	return &x
}

// tell says rows in all their figures but how long they took.
func tell(rows []strategies.Row) (text string) {
	for k, r := range rows {
		if k > 0 {
			text += "\n"
		}
		if r.Result == nil {
			text += fmt.Sprintf("%s: %s", r.Name, r.Why)
			continue
		}
		text += fmt.Sprintf("%s: %v, %.9g s, lacks %v, holds %v, bubble %.6g, sends %v, %d ops, %d tried", r.Name, r.Strategy, r.Seconds, r.Overflow, r.Peak, r.Bubble, r.Traffic, r.Ops, r.Tried)
		if r.Stream != nil {
			text += fmt.Sprintf(", streams %v every %.9g s", r.Stream.Strategy, r.Stream.Every)
		}
	}
	return text
}
