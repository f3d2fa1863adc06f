package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// summary returns a table of medians over the seeds that both ways of choosing moves have:
// what is under the expert, and by how much guided searches end shorter. A median that no plan
// fits is in no mean.
func summary(runs []run) string {
	type cell struct {
		graph  string
		budget float64
	}
	steps := map[cell]map[string]map[int]float64{} // by how, and seed
	var graphs []string
	var budgets []float64
	human := map[string]float64{}
	for k := range runs {
		r := &runs[k]
		c := cell{r.graph, r.budget}
		if steps[c] == nil {
			steps[c] = map[string]map[int]float64{chance: {}, guided: {}}
		}
		steps[c][r.how][r.seed] = r.step
		human[r.graph] = r.human
		if !slices.Contains(graphs, r.graph) {
			graphs = append(graphs, r.graph)
		}
		if !slices.Contains(budgets, r.budget) {
			budgets = append(budgets, r.budget)
		}
	}
	slices.Sort(budgets)
	var b strings.Builder
	head, rule := "| graph |", "|---|"
	for _, s := range budgets {
		head += fmt.Sprintf(" chance, %g CPU s | guided | step shorter by | seeds |", s)
		rule += "---|---|---|---|"
	}
	fmt.Fprintf(&b, "%s\n%s\n", head, rule)
	logs := map[float64]map[string]float64{}
	count := map[float64]int{}
	for _, g := range graphs {
		fmt.Fprintf(&b, "| %s |", g)
		for _, s := range budgets {
			byChance, byGuide := pairs(steps[cell{g, s}][chance], steps[cell{g, s}][guided])
			n := len(byChance)
			if n == 0 {
				b.WriteString(" - | - | - | 0 |")
				continue
			}
			plain, led := median(byChance), median(byGuide)
			if logs[s] == nil {
				logs[s] = map[string]float64{}
			}
			shorter := "-"
			if !math.IsInf(plain, 1) && !math.IsInf(led, 1) {
				shorter = fmt.Sprintf("%.1f%%", 100*(1-led/plain))
				logs[s][chance] += math.Log(plain / human[g])
				logs[s][guided] += math.Log(led / human[g])
				count[s]++
			}
			fmt.Fprintf(&b, " %s | %s | %s | %d |", under(plain, human[g]), under(led, human[g]), shorter, n)
		}
		b.WriteString("\n")
	}
	b.WriteString("| geometric mean |")
	for _, s := range budgets {
		if count[s] == 0 {
			b.WriteString(" - | - | - | 0 rows |")
			continue
		}
		n := float64(count[s])
		plain, led := math.Exp(logs[s][chance]/n), math.Exp(logs[s][guided]/n)
		fmt.Fprintf(&b, " %.1f%% | %.1f%% | %.1f%% | %d rows |", 100*(1-plain), 100*(1-led), 100*(1-led/plain), count[s])
	}
	b.WriteString("\n")
	return b.String()
}

// pairs returns the values of the keys that a and b have both.
func pairs(a, b map[int]float64) (x, y []float64) {
	for k, v := range a {
		if w, ok := b[k]; ok {
			x, y = append(x, v), append(y, w)
		}
	}
	return x, y
}

// under writes by how much a step is under the expert's.
func under(step, human float64) string {
	if math.IsInf(step, 1) {
		return "no plan"
	}
	return fmt.Sprintf("%.1f%%", 100*(1-step/human))
}

// median returns the middle of x, the mean of two where there are two.
func median(x []float64) float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
