// Command table prints the recorded comparisons of a folder (experiments/strategies) as Markdown:
// what the placement of the micro-batched graph comes to beside pipelines, and every row.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"placer/placer/strategies"
	"placer/units"
)

func main() {
	folder := "experiments/strategies"
	if len(os.Args) > 1 {
		folder = os.Args[1]
	}
	all, err := read(folder)
	if err == nil {
		err = write(os.Stdout, all)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

// document is what `placer strategies --json` says of one model on one machine.
type document struct {
	Model string `json:"-"` // of the file's name
	On    string `json:"-"` // likewise
	Batch int64
	Best  string
	Rows  []row
}

type row struct {
	Name, Strategy string
	Step           float64 `json:"step_time_s"`
	Rate           float64 `json:"samples_per_s"`
	Feasible       bool
	Peak           []int64 `json:"peak_bytes"`
	Bubble         float64
	Traffic        int64 `json:"traffic_bytes"`
	Seconds        float64
}

// models are those of the table, in its order; the branching ones have branches that a
// pipeline's stages cannot keep apart.
var (
	models    = []string{"llama", "llama70b", "moe", "vitl", "resnet50", "gnmt8"}
	branching = []string{"moe", "gnmt8"}
)

// read returns the documents MODEL-MACHINE.json of a folder, by models.
func read(folder string) (all []document, err error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*-*.json"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		model, on, _ := strings.Cut(name, "-")
		if !slices.Contains(models, model) {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		d := document{Model: model, On: strings.ReplaceAll(on, "-", " x")}
		if err := json.Unmarshal(text, &d); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, d)
	}
	slices.SortStableFunc(all, func(a, b document) int {
		return cmp.Or(cmp.Compare(slices.Index(models, a.Model), slices.Index(models, b.Model)), cmp.Compare(a.On, b.On))
	})
	return all, nil
}

// row returns the row of a name, or nil where it is not there or does not fit.
func (d *document) row(name string) *row {
	for k := range d.Rows {
		if r := &d.Rows[k]; r.Name == name && r.Feasible {
			return r
		}
	}
	return nil
}

// beside returns how much longer the placement's step is than that of 1F1B over exact stages;
// ok is false where one of them does not fit.
func (d *document) beside() (share float64, ok bool) {
	p, f := d.row(strategies.NamePlacement), d.row(strategies.NamePipeline)
	if p == nil || f == nil {
		return 0, false
	}
	return p.Step/f.Step - 1, true
}

func (d *document) branches() bool { return slices.Contains(branching, d.Model) }

// short says what the placement lacks of at least as good as 1F1B, and of 5% better where
// the model branches; empty where it lacks nothing.
func (d *document) short() string {
	switch share, ok := d.beside(); {
	case !ok:
		return ""
	case share > 1e-9:
		return "worse"
	case d.branches() && share > -0.05:
		return "below 5%"
	}
	return ""
}

func write(w io.Writer, all []document) error {
	var b strings.Builder
	b.WriteString("## Placement of the micro-batched graph beside 1F1B over exact stages\n\n")
	b.WriteString("| model | machine | 1F1B | interleaved | placement | beside 1F1B | wanted |\n|---|---|---:|---:|---:|---:|---|\n")
	both, short := 0, 0
	for k := range all {
		d := &all[k]
		share, ok := d.beside()
		if !ok {
			continue
		}
		both++
		wanted := "holds"
		if s := d.short(); s != "" {
			wanted = s
			short++
		}
		inter := "-"
		if r := d.row(strategies.NameInterleaved); r != nil {
			inter = seconds(r.Step)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %+.1f%% | %s |\n", d.Model, d.On, seconds(d.row(strategies.NamePipeline).Step), inter, seconds(d.row(strategies.NamePlacement).Step), 100*share, wanted)
	}
	fmt.Fprintf(&b, "\nIt holds on %d of %d.\n", both-short, both)
	for _, m := range models {
		mine := slices.DeleteFunc(slices.Clone(all), func(d document) bool { return d.Model != m })
		if len(mine) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s, %d samples a step\n\n| machine | row | strategy | step | samples/s | fullest | bubble | traffic | took |\n|---|---|---|---:|---:|---:|---:|---:|---:|\n", m, mine[0].Batch)
		for k := range mine {
			mine[k].write(&b)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// write prints the rows, the best in bold.
func (d *document) write(b *strings.Builder) {
	for _, r := range d.Rows {
		name := r.Name
		if name == d.Best {
			name = "**" + name + "**"
		}
		if r.Step == 0 {
			fmt.Fprintf(b, "| %s | %s | - | - | - | - | - | - | %.1f s |\n", d.On, name, r.Seconds)
			continue
		}
		rate, most := "too much", int64(0)
		if r.Feasible {
			rate = fmt.Sprintf("%.3g", r.Rate)
		}
		for _, p := range r.Peak {
			most = max(most, p)
		}
		fmt.Fprintf(b, "| %s | %s | `%s` | %s | %s | %v | %.1f%% | %v | %.1f s |\n", d.On, name, r.Strategy, seconds(r.Step), rate, units.Bytes(most), 100*r.Bubble, units.Bytes(r.Traffic), r.Seconds)
	}
}

func seconds(s float64) string {
	if s < 1 {
		return fmt.Sprintf("%.1f ms", 1e3*s)
	}
	return fmt.Sprintf("%.3f s", s)
}
