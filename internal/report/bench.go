package report

import (
	"io"
	"math"
	"slices"
	"strings"

	"placer/internal/compare"
	"placer/plan"
)

// BenchFormat names the version of Bench as a JSON document.
const BenchFormat = "placer bench 1"

// Bench is the result of an experiment of a paper: what was compared, and what of
// the figures wanted of it was reached.
type Bench struct {
	Format     string              `json:"format"`
	Bench      string              `json:"bench"`
	Claims     []Claim             `json:"claims"`
	Comparison *compare.Comparison `json:"comparison"`
}

// Claim is a figure that is wanted of an experiment. It follows from the medians
// of the comparison's rows.
type Claim struct {
	Text    string   `json:"text"`
	Wanted  float64  `json:"wanted"`  // at least, as a fraction
	Reached *float64 `json:"reached"` // nil without a case that has it
	Holds   bool     `json:"holds"`
	Cases   int      `json:"cases"` // that have the figure
	// Worst is the case that is furthest from the figure.
	Worst      string   `json:"worst_case,omitempty"`
	WorstValue *float64 `json:"worst_value"`
}

// Methods of the experiments.
const (
	NoFusion  = "none"
	TFDefault = "tf-default"
	Annealed  = "annealing x20"
	Learned   = "learned"

	Human    = "human"
	Separate = "place|schedule|fuse"
	joint    = "place+schedule+fuse"
)

// pairs of tasks, and tasks alone, of figure 6.
var pairs, singles = []string{"place+schedule", "place+fuse", "schedule+fuse"}, []string{"place", "schedule", "fuse"}

// Figure6Methods lists the methods of figure 6.
func Figure6Methods() []string {
	all := []string{TFDefault, Human}
	all = append(append(all, singles...), pairs...)
	return append(all, Separate, joint)
}

// TasksOf returns the tasks that a method of figure 6 decides together, as
// "place+fuse".
func TasksOf(method string) (plan.Tasks, error) {
	return plan.ParseTasks(strings.ReplaceAll(method, "+", ","))
}

// Figure6Claims are what the joint policy is to be worth.
func Figure6Claims(c *compare.Comparison) []Claim {
	all := []Claim{
		meanClaim(c, "all three jointly against TensorFlow's default, where that fits: reduction, geometric mean", 0.40, joint, TFDefault),
		meanClaim(c, "all three jointly against the human expert: reduction, geometric mean", 0, joint, Human),
		meanClaim(c, "all three jointly against one by one in the same budget: reduction, geometric mean", 0.08, joint, Separate),
	}
	return append(all, worstClaim(c, "all three jointly against the best pair of tasks: smallest reduction", 0, joint, pairs...))
}

// Table3Claims are what learned fusion is to be worth.
func Table3Claims(c *compare.Comparison) []Claim {
	return []Claim{
		worstClaim(c, "learned fusion against annealing with 20 times the evaluations: smallest reduction", 0, Learned, Annealed),
		worstClaim(c, "learned fusion against TensorFlow's default: smallest reduction", 0, Learned, TFDefault),
		meanClaim(c, "learned fusion against no fusion: reduction, geometric mean", 0, Learned, NoFusion),
	}
}

// medians returns the median step times by case and method.
func medians(c *compare.Comparison) map[[2]string]float64 {
	m := map[[2]string]float64{}
	for i := range c.Rows {
		if r := &c.Rows[i]; r.Median != nil {
			m[[2]string{r.Case, r.Method}] = *r.Median
		}
	}
	return m
}

// reductions returns the reduction of ours against the best of theirs, for the
// cases where ours and one of theirs fit.
func reductions(c *compare.Comparison, ours string, theirs []string) (names []string, values []float64) {
	m := medians(c)
	for _, x := range c.Matrix.Cases {
		best := math.Inf(1)
		for _, t := range theirs {
			if v, ok := m[[2]string{x.Name(), t}]; ok {
				best = min(best, v)
			}
		}
		if v, ok := m[[2]string{x.Name(), ours}]; ok && !math.IsInf(best, 1) {
			names, values = append(names, x.Name()), append(values, compare.Reduction(v, best))
		}
	}
	return names, values
}

func meanClaim(c *compare.Comparison, text string, wanted float64, ours string, theirs ...string) Claim {
	return claim(c, text, wanted, ours, theirs, func(values []float64) float64 {
		sum := 0.0
		for _, v := range values {
			sum += math.Log1p(-v)
		}
		return -math.Expm1(sum / float64(len(values)))
	})
}

func worstClaim(c *compare.Comparison, text string, wanted float64, ours string, theirs ...string) Claim {
	return claim(c, text, wanted, ours, theirs, slices.Min[[]float64])
}

func claim(c *compare.Comparison, text string, wanted float64, ours string, theirs []string, of func([]float64) float64) Claim {
	x := Claim{Text: text, Wanted: wanted}
	names, values := reductions(c, ours, theirs)
	if x.Cases = len(values); x.Cases == 0 {
		return x
	}
	reached := of(values)
	x.Reached, x.Holds = &reached, reached >= wanted
	for i, v := range values {
		if x.WorstValue == nil || v < *x.WorstValue {
			x.Worst, x.WorstValue = names[i], &values[i]
		}
	}
	return x
}

// WriteText writes b as tables.
func (b *Bench) WriteText(w io.Writer) error {
	pg := newPage(w)
	pg.comparison(b.Comparison, "\n", "")
	return pg.claims(b.Claims)
}

// WriteMarkdown writes b for a report.
func (b *Bench) WriteMarkdown(w io.Writer) error {
	pg := newMarkdown(w)
	pg.comparison(b.Comparison, "\n\n", "- ")
	return pg.claims(b.Claims)
}

func (p *page) claims(claims []Claim) error {
	p.printf("\n")
	t := newTable("figure", ">wanted", ">reached", ">cases", "worst case", ">there")
	for _, x := range claims {
		t.row(x.Text, share(&x.Wanted), share(x.Reached), x.Cases, x.Worst, share(x.WorstValue))
	}
	p.table(t)
	return p.err
}
