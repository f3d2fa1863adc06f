package cli

import (
	"context"
	"fmt"
	"io"

	"placer/baselines/partition/stages"
	"placer/baselines/search/fusion"
	"placer/graph"
	"placer/graph/fuse"
	"placer/internal/report"
	"placer/internal/words"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
	"placer/plan/formats"
)

// restriction is the program that --for names, and the problem by which its plans are
// judged: that of export. Nil: none is named.
type restriction struct {
	target formats.Target
	judge  *problem.Problem
}

// noBound has a problem spend nothing on a bound that nobody reads.
const noBound = 1e-9

// restrict finds the restriction that f names, if any, and whether the graph has what such
// a program places.
func (s *searchRun) restrict(f *searchFlags) error {
	if f.target == "" {
		return nil
	}
	t, err := formats.Find(f.target)
	if err != nil {
		return usagef("--for %s: %w", f.target, err)
	}
	if _, err := formats.FindParts(s.task.Graph); err != nil {
		return usagef("--for %s: %w", f.target, err)
	}
	x, err := problem.New(s.loaded.Source, s.task.Machine, problem.Options{Objective: s.task.Objective, Contention: s.config.Contention, BoundSeconds: noBound})
	if err != nil {
		return err
	}
	compile(x, t)
	s.restricted = &restriction{t, x}
	return nil
}

// compile has placements of x judged as the program t compiles them, if it does.
func compile(x *problem.Problem, t formats.Target) {
	if t.Compiles {
		x.JudgeBy(fusion.Compiled(x.Evaluator, fuse.NewRules(x.Graph)))
	}
}

// fusionOf returns what the program t fuses of a placement, [N]; nil for nothing.
func fusionOf(t formats.Target, g *graph.Graph, device []uint8) []uint8 {
	if !t.Compiles {
		return nil
	}
	return fusion.XLA(fuse.NewRules(g), device)
}

// search finds the best plan that the program can take, starting from the best of found, of which
// it becomes the best where it is better.
func (r *restriction) search(ctx context.Context, s *searchRun, found *search.Result) (*plan.Outcome, error) {
	t := r.target
	out, err := stages.Search(ctx, &r.judge.Problem, t, found.Rows[found.Best].Device)
	if err != nil {
		return nil, fmt.Errorf("--for %s: %w", t.Name, err)
	}
	found.Consider(s.task, t.Name, plan.Decision{Device: out.Device}, out.Evaluations, "of the best plan in the form of "+t.Name)
	return out, nil
}

// write says what p, the best plan, and that which search came to cost, in doc too. It writes the
// program's form and the plan into the run folder, and returns what writes the form.
func (r *restriction) write(c *console, s *searchRun, p *plan.Plan, out *plan.Outcome, doc *report.Search) (func(io.Writer) error, error) {
	t := r.target
	was, is := r.judge.Evaluate(p.Device), r.judge.Evaluate(out.Device)
	doc.Restricted = &report.Restricted{Program: t.Name, Value: is.Value, Feasible: is.Feasible(), Missing: int64(is.Overflow), Evaluations: out.Evaluations}
	c.say("%s: the best plan %s; the best found that %s can take %s, %+.1f%%, after %s (it loses: %s)",
		t.Name, judged(was, r.judge.Objective), t.Name, judged(is, r.judge.Objective), 100*(is.Value/was.Value-1), words.Count(out.Evaluations, "evaluation", "evaluations"), t.Lost)
	legal := &plan.Plan{Graph: s.task.Graph.Hash(), Machine: s.task.Machine.Name, Method: t.Name, Decision: plan.Decision{Device: out.Device, Fusion: fusionOf(t, s.task.Graph, out.Device)}}
	file, err := legal.File(s.task.Graph, s.task.Machine)
	if err != nil {
		return nil, err
	}
	name := "plan-" + t.Name
	if err := s.run.Write(name+".json", file.Write); err != nil {
		return nil, err
	}
	parts, err := formats.FindParts(s.task.Graph)
	if err != nil {
		return nil, err
	}
	split := t.Nearest(s.task.Graph, s.task.Machine, parts, out.Device, nil)
	form := func(w io.Writer) error { return t.Write(w, split) }
	if err := s.run.Write(name+".txt", form); err != nil {
		return nil, err
	}
	c.say("for %s: %s; as a plan: %s", t.Name, s.run.Path(name+".txt"), s.run.Path(name+".json"))
	return form, nil
}
