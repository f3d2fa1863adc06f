// Command serving predicts the rates of rows.tsv, which others measured and published, into
// predicted.tsv, and writes table.md. Rows that predicted.tsv has are not predicted again; with
// -table none is.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"placer/internal/cli"
)

// row is a measurement that was published, and what is predicted for it.
type row struct {
	model, gpu, strategy     string
	most                     int64 // sequences that the server may have at once: no more than there are requests
	prompt, answer, requests int64
	published                float64 // tokens a second of all requests
	predicted                float64 // 0: not yet
	sequences                int64   // at once, as predicted
}

// key names a row in predicted.tsv.
func (r *row) key() string {
	return strings.Join([]string{r.model, r.gpu, r.strategy, fmt.Sprint(r.prompt), fmt.Sprint(r.answer)}, "\t")
}

// ratio is predicted over published.
func (r *row) ratio() float64 { return r.predicted / r.published }

// rounds is ratio where requests are counted as the measurement counts them: all are there at once and of
// one length, so that so many sequences at a time answer them in whole rounds.
func (r *row) rounds() float64 {
	n := float64(r.requests) / float64(r.sequences)
	return r.ratio() * n / math.Ceil(n)
}

func main() {
	folder := flag.String("folder", "experiments/serving", "folder of the experiment")
	table := flag.Bool("table", false, "write the table of what is recorded, predict nothing")
	flag.Parse()
	if err := run(*folder, *table, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "serving:", err)
		os.Exit(1)
	}
}

func run(folder string, table bool, progress io.Writer) error {
	rows, err := read(folder)
	if err != nil {
		return err
	}
	for k := range rows {
		r := &rows[k]
		if table || r.predicted > 0 {
			continue
		}
		if err := r.predict(folder); err != nil {
			return fmt.Errorf("%s: %w", r.key(), err)
		}
		fmt.Fprintf(progress, "%s: %.0f tokens/s, published %.0f, %.2f times\n", r.key(), r.predicted, r.published, r.ratio())
		f, err := os.OpenFile(filepath.Join(folder, "predicted.tsv"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(f, "%s\t%.1f\t%d\n", r.key(), r.predicted, r.sequences)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	if rows, err = read(folder); err != nil { // rounded as they are kept
		return err
	}
	return os.WriteFile(filepath.Join(folder, "table.md"), []byte(tables(rows)), 0o644)
}

// read returns the rows with what is recorded of them.
func read(folder string) (rows []row, err error) {
	lines, err := fields(filepath.Join(folder, "rows.tsv"), 8)
	if err != nil {
		return nil, err
	}
	at := map[string]*row{}
	for _, f := range lines[1:] {
		r := row{model: f[0], gpu: f[1], strategy: f[2]}
		if _, err := fmt.Sscan(strings.Join(f[3:], " "), &r.most, &r.prompt, &r.answer, &r.requests, &r.published); err != nil {
			return nil, fmt.Errorf("rows.tsv: %q: %w", f, err)
		}
		rows = append(rows, r)
	}
	for k := range rows {
		at[rows[k].key()] = &rows[k]
	}
	recorded, err := fields(filepath.Join(folder, "predicted.tsv"), 7)
	if os.IsNotExist(err) {
		return rows, nil
	}
	if err != nil {
		return nil, err
	}
	for _, f := range recorded {
		r := at[strings.Join(f[:5], "\t")]
		if r == nil {
			return nil, fmt.Errorf("predicted.tsv: %q is no row", f)
		}
		if _, err := fmt.Sscan(f[5]+" "+f[6], &r.predicted, &r.sequences); err != nil {
			return nil, fmt.Errorf("predicted.tsv: %q: %w", f, err)
		}
	}
	return rows, nil
}

// fields returns those of each line of a file.
func fields(path string, n int) (lines [][]string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != n {
			return nil, fmt.Errorf("%s: %q has %d columns, want %d", path, line, len(f), n)
		}
		lines = append(lines, f)
	}
	return lines, nil
}

// predict asks placer for r.
func (r *row) predict(folder string) error {
	args := []string{"serving", "-q", "--json", "--graph", filepath.Join(folder, "models", r.model+".json"), "--gpu", r.gpu,
		"--prompt", fmt.Sprint(r.prompt), "--answer", fmt.Sprint(r.answer), "--sequences", fmt.Sprint(r.most), "--strategy", r.strategy}
	var out, said bytes.Buffer
	if code := cli.Main(args, strings.NewReader(""), &out, &said); code != 0 {
		return fmt.Errorf("exit %d: %s%s", code, strings.TrimSpace(said.String()), out.String())
	}
	var d struct {
		Rows []struct {
			Tokens    float64 `json:"tokens_per_s_per_device"`
			Devices   int     `json:"devices_per_replica"`
			Sequences int64   `json:"sequences"`
		}
	}
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		return err
	}
	if len(d.Rows) != 1 || d.Rows[0].Tokens <= 0 {
		return fmt.Errorf("no rate in %s", out.String())
	}
	r.predicted, r.sequences = d.Rows[0].Tokens*float64(d.Rows[0].Devices), d.Rows[0].Sequences
	return nil
}

// mean collects ratios.
type mean struct {
	logs, least, largest float64
	n, near              int
}

func (m *mean) add(x float64) {
	if m.n == 0 {
		m.least, m.largest = x, x
	}
	m.logs, m.least, m.largest, m.n = m.logs+math.Log(x), min(m.least, x), max(m.largest, x), m.n+1
	if x >= 1/1.25 && x <= 1.25 {
		m.near++
	}
}

func (m *mean) value() float64 { return math.Exp(m.logs / float64(m.n)) }

// tables are those of what is predicted: a line for each server, and one for each row.
func tables(rows []row) string {
	var b strings.Builder
	fmt.Fprintln(&b, "| model | GPU | a replica | loads | predicted / published, geometric mean | least to largest | within a quarter | in whole rounds | within a quarter |\n|---|---|---|---:|---:|---|---:|---:|---:|")
	var all, allRounds mean
	for from := 0; from < len(rows); {
		to := from
		var m, rounds mean
		for ; to < len(rows) && rows[to].model == rows[from].model && rows[to].gpu == rows[from].gpu; to++ {
			if r := &rows[to]; r.predicted > 0 {
				m.add(r.ratio())
				all.add(r.ratio())
				rounds.add(r.rounds())
				allRounds.add(r.rounds())
			}
		}
		r := &rows[from]
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %.2f | %.2f to %.2f | %d | %.2f | %d |\n", r.model, r.gpu, r.strategy, m.n, m.value(), m.least, m.largest, m.near, rounds.value(), rounds.near)
		from = to
	}
	fmt.Fprintf(&b, "| all | | | %d | %.2f | %.2f to %.2f | %d | %.2f | %d |\n", all.n, all.value(), all.least, all.largest, all.near, allRounds.value(), allRounds.near)
	fmt.Fprintln(&b, "\n| model | GPU | a replica | prompt / answer, tokens | sequences | predicted, tokens/s | published | ratio | in whole rounds |\n|---|---|---|---|---:|---:|---:|---:|---:|")
	for k := range rows {
		if r := &rows[k]; r.predicted > 0 {
			fmt.Fprintf(&b, "| %s | %s | %s | %d / %d | %d | %.0f | %.0f | %.2f | %.2f |\n", r.model, r.gpu, r.strategy, r.prompt, r.answer, r.sequences, r.predicted, r.published, r.ratio(), r.rounds())
		}
	}
	return b.String()
}
