package sequential

import (
	"context"
	"fmt"

	"placer/graph/unit"
	"placer/placer/corpus"
	"placer/placer/corpus/families"
	"placer/plan"
)

// example is a problem to learn from.
type example struct {
	*Features
	of Case
	// expert is the expert's step time, in seconds: what rewards are relative to.
	expert float64
	// label is the plan of a corpus; its Device is nil where the problem was drawn.
	label plan.Decision
	// teacher is where a search placed the cells, [N]; nil where none was asked.
	teacher []uint8
}

// exampleKey is the family of an example and its number there.
type exampleKey struct {
	family string
	index  int
}

// infeasibleExpert is how many times longer than it says an expert's step counts
// that does not fit.
const infeasibleExpert = 2

// mostDraws is how many graphs of a family may be too large, one after another, before all are
// taken to be.
const mostDraws = 1000

// newExample draws case number index of family f under the run's seed: the first draw
// that is small enough. It is an error if there is none for long.
func (t *pretraining) newExample(ctx context.Context, f families.Family, index int) (*example, error) {
	random := stream(t.c.Seed, f.Name, uint64(index))
	for range t.draws {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c := drawCase(f, random)
		p, err := c.Problem()
		if err != nil {
			return nil, fmt.Errorf("%s on %d %s: %w", c.Workload, c.Devices, c.GPU, err)
		}
		if p.Units.Levels[unit.Cell].NumUnits()*c.Devices > t.c.MostRows {
			continue
		}
		return t.exampleOf(ctx, c, p)
	}
	return nil, fmt.Errorf("pretrain: %d graphs of family %s in a row have more than %d decisions times devices", t.draws, f.Name, t.c.MostRows)
}

// fromCorpus returns the example of x with its label.
func (t *pretraining) fromCorpus(ctx context.Context, x *corpus.Problem) (*example, error) {
	p, d, err := x.Open()
	if err != nil {
		return nil, err
	}
	p.Units = p.Units.WithoutPartialGradients()
	e, err := t.exampleOf(ctx, Case{Workload: x.Net, GPU: x.Machine.String(), Devices: len(x.Machine.GPUs)}, &p.Problem)
	if err == nil {
		e.label = d
	}
	return e, err
}

// exampleOf returns the example of p, which is c's.
func (t *pretraining) exampleOf(ctx context.Context, c Case, p *plan.Problem) (*example, error) {
	features, err := plainFeatures(p)
	if err != nil {
		return nil, err
	}
	o, err := t.host.Expert.Place(ctx, p)
	if err != nil {
		return nil, err
	}
	x := &example{Features: features, of: c, expert: o.Score.Value}
	if !o.Score.Feasible() {
		x.expert *= infeasibleExpert
	}
	return x, nil
}

// teach asks the teacher what to decide on x, unless it is known. What is kept between
// runs are its decisions on cells.
func (t *pretraining) teach(ctx context.Context, x *example) error {
	if x.teacher != nil {
		return nil
	}
	c, cells := x.of, x.instance(atCells)
	if x.label.Device != nil {
		x.teacher = make([]uint8, len(cells.part.Of))
		cells.place(cells.labels(x.label.Device), x.teacher)
		return nil
	}
	key := fmt.Sprintf("%s %s %d %g %d %s %s", c.Workload, c.GPU, c.Devices, c.Bandwidth, t.host.TeacherBudget.Evaluations, cells.problem.Graph.Hash(), cells.problem.Machine.Hash())
	var d []int32
	if t.host.Recall != nil {
		d = t.host.Recall(key)
	}
	known := len(d) == cells.part.NumUnits()
	if !known {
		p := *cells.problem
		p.Budget = t.host.TeacherBudget
		o, err := t.host.Teacher.Place(ctx, &p)
		if err == nil {
			err = ctx.Err() // a teacher that was stopped has not given its best
		}
		if err != nil {
			return err
		}
		d = cells.labels(o.Device)
	}
	x.teacher = make([]uint8, len(cells.part.Of))
	cells.place(d, x.teacher)
	if !known && t.host.Remember != nil {
		return t.host.Remember(key, d)
	}
	return nil
}
