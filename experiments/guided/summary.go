package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// summary returns a table of medians: what is under the expert, and by how much guided
// searches end shorter.
func summary(runs []run) string {
	type cell struct {
		graph  string
		budget float64
	}
	steps := map[cell]map[string][]float64{}
	var graphs []string
	var budgets []float64
	human := map[string]float64{}
	for k := range runs {
		r := &runs[k]
		c := cell{r.graph, r.budget}
		if steps[c] == nil {
			steps[c] = map[string][]float64{}
		}
		steps[c][r.how] = append(steps[c][r.how], r.step)
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
			x := steps[cell{g, s}]
			n := min(len(x[chance]), len(x[guided]))
			if n == 0 {
				b.WriteString(" - | - | - | 0 |")
				continue
			}
			plain, led := median(x[chance]), median(x[guided])
			if logs[s] == nil {
				logs[s] = map[string]float64{}
			}
			logs[s][chance] += math.Log(plain / human[g])
			logs[s][guided] += math.Log(led / human[g])
			count[s]++
			fmt.Fprintf(&b, " %.1f%% | %.1f%% | %.1f%% | %d |", 100*(1-plain/human[g]), 100*(1-led/human[g]), 100*(1-led/plain), n)
		}
		b.WriteString("\n")
	}
	b.WriteString("| geometric mean |")
	for _, s := range budgets {
		n := float64(count[s])
		plain, led := math.Exp(logs[s][chance]/n), math.Exp(logs[s][guided]/n)
		fmt.Fprintf(&b, " %.1f%% | %.1f%% | %.1f%% | %d rows |", 100*(1-plain), 100*(1-led), 100*(1-led/plain), count[s])
	}
	b.WriteString("\n")
	return b.String()
}

// median returns the middle of x, the mean of two where there are two.
func median(x []float64) float64 {
	x = slices.Clone(x)
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
