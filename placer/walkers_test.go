package placer_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"placer/graph"
	"placer/hw"
	"placer/placer/methods"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/plan"
	"placer/workloads"
)

func newProblem(t testing.TB, g *graph.Graph, m *hw.Machine, tasks plan.Tasks) *problem.Problem {
	t.Helper()
	p, err := problem.New(problem.Source{Graph: g}, m, problem.Options{Tasks: tasks})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// searchByDefault searches as the command does where no methods are named.
func searchByDefault(t testing.TB, p *problem.Problem, c search.Config, o methods.Options) *search.Result {
	t.Helper()
	still := func() float64 { return 0 }
	r, err := search.Search(context.Background(), p, methods.ByDefault(methods.Of(p), methods.ForSearch(methods.Of(p), o)), c, search.Host{Clock: still, CPU: still})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The rows of a search are those of its seed, budget and walkers, to the last bit,
// whatever runs them.
func TestThreadsChangeNothing(t *testing.T) {
	trained, err := workloads.Build("rnnlm:layers=2,unroll=2,hidden=256,vocab=500")
	if err != nil {
		t.Fatal(err)
	}
	for k, g := range []*graph.Graph{randomGraph(t, 3), randomGraph(t, 4), trained} {
		tasks := plan.Place
		if k%2 == 1 {
			tasks = plan.AllTasks
		}
		m, err := hw.Take("p100", 3, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, walkers := range []int{0, 5} {
			var first []search.Row
			for _, workers := range []int{1, 2, 4} {
				t.Run(fmt.Sprintf("%s/walkers=%d/workers=%d", g.Name(), walkers, workers), func(t *testing.T) {
					c := search.Default()
					c.Budget, c.Workers, c.Seed = plan.Budget{Evaluations: 600}, workers, 7
					o := methods.Default()
					o.Workers, o.Walkers = workers, walkers
					r := searchByDefault(t, newProblem(t, g, m, tasks), c, o)
					if first == nil {
						first = r.Rows
					} else if !reflect.DeepEqual(r.Rows, first) {
						t.Errorf("the rows are others than those of one thread:\n%v\n%v", r.Rows, first)
					}
				})
			}
		}
	}
}

// BenchmarkWalkers makes the same evaluations on one thread and on two.
func BenchmarkWalkers(b *testing.B) {
	g, err := workloads.Build("gnmt4")
	if err != nil {
		b.Fatal(err)
	}
	m, err := hw.Take("p100", 4, false)
	if err != nil {
		b.Fatal(err)
	}
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("gnmt4/walkers=2/workers=%d", workers), func(b *testing.B) {
			c := search.Default()
			c.Budget, c.Workers = plan.Budget{Evaluations: 3000}, workers
			o := methods.Default()
			o.Workers = workers
			for b.Loop() {
				searchByDefault(b, newProblem(b, g, m, plan.Place), c, o)
			}
		})
	}
}
