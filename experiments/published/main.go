// Command published predicts the steps of rows.json, whose times others measured and published,
// records what it predicts in predicted.json, and writes the tables of README.md. With -table it
// writes the tables alone, of what is recorded.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"placer/internal/cli"
)

// document is rows.json.
type document struct {
	Sources map[string]source `json:"sources"`
	Classes []class           `json:"classes"`
	Rows    []row             `json:"rows"`
}

// source is where figures were published.
type source struct {
	Title string `json:"title"`
	Where string `json:"where"`
}

// class is a kind of rows, of which the mean is taken.
type class struct {
	Name string `json:"name"`
	Note string `json:"note"` // what holds of its rows
}

// row is one published measurement, and the command that predicts it.
type row struct {
	Name      string  `json:"name"`
	Class     string  `json:"class"`
	Source    string  `json:"source"`
	Place     string  `json:"place"`     // the table and row of the source
	Command   string  `json:"command"`   // of placer, without --json
	Published float64 `json:"published"` // in Unit
	Unit      string  `json:"unit"`      // "s", or what is done in a second
	Work      float64 `json:"work"`      // so much of Unit is done in a step; 0 where it is seconds
}

// seconds is the published step in seconds.
func (r *row) seconds() float64 {
	if r.Unit == "s" {
		return r.Published
	}
	return r.Work / r.Published
}

// predicted is predicted.json: seconds of a step by the name of its row.
type predicted map[string]float64

func main() {
	folder := flag.String("folder", "experiments/published", "folder of the experiment")
	only := flag.String("rows", "", "predict rows whose names have this in them, keep the others")
	table := flag.Bool("table", false, "write the tables of what is recorded, predict nothing")
	flag.Parse()
	if err := run(*folder, *only, *table, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "published:", err)
		os.Exit(1)
	}
}

func run(folder, only string, table bool, progress io.Writer) error {
	d, seconds, err := read(folder)
	if err != nil {
		return err
	}
	if !table {
		for k := range d.Rows {
			r := &d.Rows[k]
			if !strings.Contains(r.Name, only) {
				continue
			}
			s, err := predict(r.Command)
			if err != nil {
				return fmt.Errorf("%s: %w", r.Name, err)
			}
			seconds[r.Name] = s
			fmt.Fprintf(progress, "%s: %.4g s, published %.4g s, %.2f times\n", r.Name, s, r.seconds(), s/r.seconds())
		}
		text, err := json.MarshalIndent(seconds, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, "predicted.json"), append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	var b strings.Builder
	if err := write(&b, d, seconds); err != nil {
		return err
	}
	path := filepath.Join(folder, "README.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, after, err := around(string(page))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(before+b.String()+after), 0o644)
}

func read(folder string) (*document, predicted, error) {
	var d document
	if err := decode(filepath.Join(folder, "rows.json"), &d); err != nil {
		return nil, nil, err
	}
	seconds := predicted{}
	if err := decode(filepath.Join(folder, "predicted.json"), &seconds); err != nil && !os.IsNotExist(err) {
		return nil, nil, err
	}
	return &d, seconds, nil
}

func decode(path string, to any) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	in := json.NewDecoder(file)
	in.DisallowUnknownFields()
	if err := in.Decode(to); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// The tables of README.md stand between these.
const (
	begin = "<!-- tables: make repro-published -->\n"
	end   = "<!-- end of tables -->"
)

// around returns what stands before and behind the tables of a page.
func around(page string) (before, after string, err error) {
	before, rest, ok := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", "", fmt.Errorf("no marks around the tables")
	}
	return before + begin, end + after, nil
}

// predict runs placer with a command and returns the seconds of the step that it tells. A step that
// does not fit has an exit code of its own, and a time.
func predict(command string) (float64, error) {
	var out, said bytes.Buffer
	if code := cli.Main(append(words(command), "-q", "--json"), strings.NewReader(""), &out, &said); code != 0 && out.Len() == 0 {
		return 0, fmt.Errorf("exit %d: %s", code, strings.TrimSpace(said.String()))
	}
	return stepOf(out.Bytes())
}

// stepOf returns the step of a document: of strategies the only row's, whose name best is, of a
// search that of its best plan.
func stepOf(text []byte) (float64, error) {
	type step struct {
		Seconds float64 `json:"step_time_s"`
		Why     string
	}
	var d struct{ Rows, Best json.RawMessage }
	if err := json.Unmarshal(text, &d); err != nil {
		return 0, err
	}
	var plan step
	if json.Unmarshal(d.Best, &plan) == nil && plan.Seconds > 0 {
		return plan.Seconds, nil
	}
	var rows []step
	if err := json.Unmarshal(d.Rows, &rows); err != nil || len(rows) != 1 {
		return 0, fmt.Errorf("no step in %d rows", len(rows))
	}
	if rows[0].Seconds <= 0 {
		return 0, fmt.Errorf("no step: %s", rows[0].Why)
	}
	return rows[0].Seconds, nil
}

// words divides a command at spaces, but for what is quoted.
func words(command string) (all []string) {
	for k, part := range strings.Split(command, "'") {
		if k%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}

// spread says of ratios of predicted to published seconds what they have in common.
type spread struct {
	n             int
	mean, low, up float64 // geometric mean, least and largest
	within        int     // of a quarter, either way
}

func spreadOf(ratios []float64) (s spread) {
	s.low = math.Inf(1)
	for _, r := range ratios {
		s.n++
		s.mean += math.Log(r)
		s.low, s.up = min(s.low, r), max(s.up, r)
		if r <= 1.25 && r >= 1/1.25 {
			s.within++
		}
	}
	s.mean = math.Exp(s.mean / float64(max(s.n, 1)))
	return s
}

// write writes the tables: by class, then every row, then the sources and commands.
func write(w io.Writer, d *document, seconds predicted) error {
	ratio := func(r *row) float64 { return seconds[r.Name] / r.seconds() }
	ratios := map[string][]float64{}
	var every []float64
	for k := range d.Rows {
		r := &d.Rows[k]
		if seconds[r.Name] <= 0 {
			return fmt.Errorf("%s is not predicted", r.Name)
		}
		if !slices.ContainsFunc(d.Classes, func(c class) bool { return c.Name == r.Class }) {
			return fmt.Errorf("%s: no class %q", r.Name, r.Class)
		}
		if _, ok := d.Sources[r.Source]; !ok {
			return fmt.Errorf("%s: no source %q", r.Name, r.Source)
		}
		ratios[r.Class] = append(ratios[r.Class], ratio(r))
		every = append(every, ratio(r))
	}
	fmt.Fprint(w, "| class | rows | predicted over published, geometric mean | least | largest | within a quarter |\n|---|---:|---:|---:|---:|---:|\n")
	line := func(name string, s spread) {
		fmt.Fprintf(w, "| %s | %d | %.2f | %.2f | %.2f | %d |\n", name, s.n, s.mean, s.low, s.up, s.within)
	}
	for _, c := range d.Classes {
		line(c.Name, spreadOf(ratios[c.Name]))
	}
	line("all", spreadOf(every))
	for _, c := range d.Classes {
		fmt.Fprintf(w, "\n### %s\n\n%s\n\n| step | published | a step | predicted | ratio |\n|---|---:|---:|---:|---:|\n", strings.ToUpper(c.Name[:1])+c.Name[1:], c.Note)
		for k := range d.Rows {
			if r := &d.Rows[k]; r.Class == c.Name {
				published := ""
				if r.Unit != "s" {
					published = fmt.Sprintf("%v %s", r.Published, r.Unit)
				}
				fmt.Fprintf(w, "| %s [%s] | %s | %s | %s | %.2f |\n", r.Name, r.Source, published, milliseconds(r.seconds()), milliseconds(seconds[r.Name]), ratio(r))
			}
		}
	}
	fmt.Fprint(w, "\n### Sources\n\n")
	var keys []string
	for key := range d.Sources {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		fmt.Fprintf(w, "- [%s] %s, %s. Rows:", key, d.Sources[key].Title, d.Sources[key].Where)
		var places []string
		for k := range d.Rows {
			if r := &d.Rows[k]; r.Source == key && !slices.Contains(places, r.Place) {
				places = append(places, r.Place)
			}
		}
		fmt.Fprintf(w, " %s.\n", strings.Join(places, "; "))
	}
	fmt.Fprint(w, "\n### Commands\n\n")
	rows := slices.Clone(d.Rows)
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(place(d, a.Class), place(d, b.Class)) })
	for k := range rows {
		fmt.Fprintf(w, "- %s: `placer %s`\n", rows[k].Name, rows[k].Command)
	}
	return nil
}

// place is where a class stands.
func place(d *document, name string) int {
	return slices.IndexFunc(d.Classes, func(c class) bool { return c.Name == name })
}

func milliseconds(s float64) string {
	if s < 1 {
		return fmt.Sprintf("%.4g ms", 1e3*s)
	}
	return fmt.Sprintf("%.4g s", s)
}
