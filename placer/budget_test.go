package placer_test

import (
	"testing"

	"placer/hw"
	"placer/placer/methods"
	"placer/placer/search"
	"placer/plan"
	"placer/units"
)

// endsByDefault returns the value of the plan that a search as the command makes it finds
// for random graph seed on three P100s whose links are speed times as fast.
func endsByDefault(t *testing.T, seed uint64, speed float64, evaluations int) (float64, plan.Decision, func(plan.Decision) float64) {
	t.Helper()
	m, err := hw.Take("p100", 3, false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Links {
		m.Links[i].Bandwidth *= units.BytesPerSecond(speed)
	}
	tasks := plan.Place
	if seed%2 == 0 {
		tasks = plan.AllTasks
	}
	c := search.Default()
	c.Budget, c.Fewer, c.Workers = plan.Budget{Evaluations: evaluations}, true, 2
	p := newProblem(t, randomGraph(t, seed), m, tasks)
	r := searchByDefault(t, p, c, methods.Default())
	best := &r.Rows[r.Best]
	return best.Score.Value, best.Decision, func(d plan.Decision) float64 {
		return p.Evaluator.Evaluate(d.Or(plan.Decision{Priority: p.Priority})).Value
	}
}

// tie is by how much steps of the same worth may differ, for plans that close are told apart
// by other things.
const tie = 2e-6

// More budget never ends behind less: a search makes a smaller one's evaluations and goes
// on. Faster links do, for some graphs: a plan itself may take longer on them (Graham
// 1969), so that no search can promise it. How often is told. With the plan of the slower
// links given, as by --from, none does.
func TestMoreBudgetIsNeverWorse(t *testing.T) { moreBudget(t, 20) }

func moreBudget(t *testing.T, graphs uint64) {
	shorter, behind, anomalies := 0, 0, 0
	worst := 0.0
	for seed := range graphs {
		few, d, _ := endsByDefault(t, seed, 1, 150)
		more, _, _ := endsByDefault(t, seed, 1, 300)
		if more > few*(1+tie) {
			t.Errorf("graph %d: %.6g ms after 300 evaluations, %.6g ms after 150", seed, more*1e3, few*1e3)
		}
		if more < few*(1-tie) {
			shorter++
		}
		fast, _, value := endsByDefault(t, seed, 4, 150)
		if fast > few*(1+tie) {
			behind++
			worst = max(worst, fast/few-1)
		}
		given := value(d)
		if given > few*(1+tie) {
			anomalies++
		}
		if min(fast, given) > few*(1+tie) {
			t.Errorf("graph %d: %.6g ms on slow links, %.6g ms on four times faster ones, %.6g ms there by the same plan", seed, few*1e3, fast*1e3, given*1e3)
		}
	}
	if shorter == 0 {
		t.Error("no search gained from more budget: the test shows nothing")
	}
	t.Logf("of %d graphs, %d have a shorter step after twice the budget; with four times faster links %d end behind, by %.2g%% at most, and %d plans found without take longer", graphs, shorter, behind, 100*worst, anomalies)
}

// Faster links end behind slower ones where the search on them stops short of what it would
// find, which is rare once a search has the evaluations that seconds give it: at most one
// graph of a hundred, and no more than 2% behind.
func TestFasterLinksAreRarelyWorse(t *testing.T) { fasterLinks(t, 5, 2000) }

func fasterLinks(t *testing.T, graphs uint64, evaluations int) {
	behind, ahead := 0, 0
	for seed := range graphs {
		slow, _, _ := endsByDefault(t, seed, 1, evaluations)
		fast, _, _ := endsByDefault(t, seed, 4, evaluations)
		switch {
		case fast > slow*1.02:
			t.Errorf("graph %d: %.6g ms on slow links, %.6g ms on four times faster ones", seed, slow*1e3, fast*1e3)
		case fast > slow*(1+tie):
			behind++
			t.Logf("graph %d: %.6g ms on slow links, %.6g ms on four times faster ones", seed, slow*1e3, fast*1e3)
		case fast < slow*(1-tie):
			ahead++
		}
	}
	if behind > int(graphs)/100 {
		t.Errorf("%d of %d graphs end behind", behind, graphs)
	}
	if ahead == 0 {
		t.Error("no graph gained from faster links: the test shows nothing")
	}
	t.Logf("within %d evaluations, %d of %d graphs end behind on faster links, %d ahead", evaluations, behind, graphs, ahead)
}
