package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"placer/hw"
	"placer/internal/words"
	"placer/placer/strategies"
	"placer/units"
)

// strategiesFormat names the version of Strategies as a JSON document.
const strategiesFormat = "placer strategies 1"

// Strategies says what each way to divide a step among devices comes to.
type Strategies struct {
	Format  string        `json:"format"`
	Graph   string        `json:"graph"`
	Machine Machine       `json:"machine"`
	Batch   int64         `json:"batch"` // samples a step, on all devices together
	Rows    []strategyRow `json:"rows"`
	Best    string        `json:"best,omitempty"` // row; empty: nothing fits
	Seconds float64       `json:"seconds"`        // to the answer
	Notes   []string      `json:"notes,omitempty"`
	Launch  *Launch       `json:"launch,omitempty"`
	// Assumptions are remarks on the graph's file: what it left open and what was taken.
	Assumptions []string `json:"assumptions,omitempty"`
	// Interrupted says that rows are missing, and the best may be among them.
	Interrupted bool `json:"interrupted,omitempty"`
}

// Launch says how a program runs the best row that it can run.
type Launch struct {
	Program  string `json:"program"`
	Row      string `json:"row,omitempty"`
	Strategy string `json:"strategy,omitempty"`
	Flags    string `json:"flags,omitempty"`
	Why      string `json:"why,omitempty"` // it does not run the best row
}

// strategyRow is one way.
type strategyRow struct {
	Name         string  `json:"name"`
	Strategy     string  `json:"strategy,omitempty"`
	Data         int     `json:"data_parallel,omitempty"`
	Pipeline     int     `json:"pipeline_stages,omitempty"`
	Tensor       int     `json:"tensor_parallel,omitempty"`
	Vocabulary   bool    `json:"vocabulary_parallel,omitempty"`
	Sequence     bool    `json:"sequence_parallel,omitempty"`
	Experts      bool    `json:"expert_parallel,omitempty"`
	ExpertRanks  int     `json:"expert_ranks,omitempty"` // replicas that share experts out among themselves
	TokenRanks   int     `json:"token_ranks,omitempty"`  // replicas that share tokens out among themselves
	Recompute    string  `json:"recompute,omitempty"`
	Sharding     string  `json:"sharding,omitempty"`
	Schedule     string  `json:"schedule,omitempty"`
	Chunks       int     `json:"chunks,omitempty"`
	MicroBatches int     `json:"micro_batches,omitempty"`
	StepTime     float64 `json:"step_time_s,omitempty"`
	Rate         float64 `json:"samples_per_s,omitempty"`
	// Stream is what repeated steps of inference come to by StreamStrategy.
	Stream         float64 `json:"stream_samples_per_s,omitempty"`
	StreamStrategy string  `json:"stream_strategy,omitempty"`

	Feasible bool     `json:"feasible"`
	Order    []string `json:"ranks_on,omitempty"`   // device of each rank, where that is not the machine's order
	Peak     []int64  `json:"peak_bytes,omitempty"` // of devices whose ranks are simulated; 0 of those that do as these do
	Missing  int64    `json:"missing_bytes,omitempty"`
	Bubble   float64  `json:"bubble"`
	Traffic  int64    `json:"traffic_bytes"`
	Ops      int      `json:"ops,omitempty"` // simulated
	Tried    int      `json:"tried"`         // strategies
	Seconds  float64  `json:"seconds"`
	Why      string   `json:"why,omitempty"` // it cannot be done
}

// CompareStrategies describes rows for a graph on m at a batch.
func CompareStrategies(graph string, m *hw.Machine, batch int64, rows []strategies.Row, took float64) *Strategies {
	d := &Strategies{Format: strategiesFormat, Graph: graph, Machine: IdentifyMachine(m), Batch: batch, Seconds: took}
	indivisible := false
	for k := range rows {
		d.Rows = append(d.Rows, describeStrategy(&rows[k], batch))
		indivisible = indivisible || rows[k].Indivisible
	}
	if order := taken(m); order != "" {
		d.Notes = append(d.Notes, order+" One device is the first.")
	}
	if indivisible {
		d.Notes = append(d.Notes, "give --batch N: samples of a step that the devices can share")
	}
	if best := strategies.Best(rows); best != nil && best.Overflow == 0 {
		d.Best = best.Name
	}
	return d
}

// describeStrategy is a row of a comparison at a batch.
func describeStrategy(r *strategies.Row, batch int64) strategyRow {
	x := strategyRow{Name: r.Name, Tried: r.Tried, Seconds: r.Took, Why: r.Why}
	if r.Result == nil {
		return x
	}
	s := r.Strategy
	x.Strategy, x.Data, x.Pipeline, x.Tensor, x.MicroBatches = s.String(), s.Data, s.Pipeline, s.Tensor, s.MicroBatches
	x.Vocabulary, x.Sequence, x.Experts, x.ExpertRanks, x.TokenRanks = s.Vocabulary, s.Sequence, s.Experts > 0, s.Experts, s.Context
	if s.Recompute > 0 {
		x.Recompute = s.Recompute.String()
	}
	if s.Data > 1 {
		x.Sharding = s.Sharding.String()
	}
	if s.Pipeline > 1 {
		x.Schedule, x.Chunks = s.Schedule.String(), s.Chunks
	}
	x.StepTime, x.Feasible, x.Missing, x.Bubble, x.Traffic, x.Ops = r.Seconds, r.Overflow == 0, int64(r.Overflow), r.Bubble, int64(r.Traffic), r.Ops
	if x.Feasible {
		x.Rate = float64(batch) / r.Seconds
	}
	if y := r.Stream; y != nil {
		x.Stream, x.StreamStrategy = float64(batch)/y.Every, y.Strategy.String()
	}
	x.Order = r.On
	for _, b := range r.Peak {
		x.Peak = append(x.Peak, int64(b))
	}
	return x
}

// Feasible reports whether some row fits.
func (d *Strategies) Feasible() bool { return d.Best != "" }

// WriteText writes d as a table.
func (d *Strategies) WriteText(w io.Writer) error {
	pg := newPage(w)
	pg.prosef("%s on %s, %s\n", d.Graph, d.Machine.Name, devices(d.Machine.Devices))
	pg.printf("  %s a step, on all devices together\n\n", words.Count(d.Batch, "sample", "samples"))
	writeWays(pg, d.Rows, d.Best)
	for _, n := range d.Notes {
		pg.prose(n)
	}
	if d.Launch != nil {
		d.Launch.write(pg)
	}
	return pg.err
}

// write says l; flags stand on a line of their own, to be copied.
func (l *Launch) write(pg *page) {
	if l.Why != "" {
		pg.prosef("%s does not run the best row: %s\n", l.Program, l.Why)
	}
	switch {
	case l.Row == "":
		pg.prosef("%s runs none of the rows that fit\n", l.Program)
	case l.Flags == "":
		pg.prosef("%s runs %s, %s, without flags\n", l.Program, l.Row, l.Strategy)
	default:
		pg.prosef("%s runs %s, %s, by\n", l.Program, l.Row, l.Strategy)
		pg.printf("%s", commandLines(l.Flags))
	}
}

// commandLines breaks flags into lines that a shell reads as one, a configuration in JSON at its
// spaces. A flag is not parted from its value.
func commandLines(flags string) string {
	end := " \\\n"
	if strings.HasPrefix(flags, "{") {
		end = "\n"
	}
	text, width := "", 0
	words := strings.Fields(flags)
	for k := 0; k < len(words); k++ {
		word := words[k]
		if k+1 < len(words) && strings.HasPrefix(word, "--") && !strings.HasPrefix(words[k+1], "--") {
			k++
			word += " " + words[k]
		}
		switch {
		case text == "":
			text, width = "  "+word, 2+len(word)
		case width+1+len(word)+len(" \\") > textWidth:
			text, width = text+end+"  "+word, 2+len(word)
		default:
			text, width = text+" "+word, width+1+len(word)
		}
	}
	return text + "\n"
}

// writeWays writes rows as a table, that named best with a star, and what was not done of
// them.
func writeWays(pg *page, rows []strategyRow, best string) {
	streams := slices.ContainsFunc(rows, func(r strategyRow) bool { return r.Stream > 0 })
	head := []string{"way", "strategy", ">step", ">samples/s", ">fullest", ">bubble", ">traffic", ">took"}
	if streams {
		head = append(head, ">stream")
	}
	t := newTable(head...).fitting("took", "traffic", "bubble")
	for _, r := range rows {
		name := r.Name
		if name == best {
			name += " *"
		}
		cells := []any{name, "-", "-", "-", "-", "-", "-", fmt.Sprintf("%.1f s", r.Seconds)}
		if r.StepTime > 0 {
			most := int64(0)
			for _, b := range r.Peak {
				most = max(most, b)
			}
			rate := "too much"
			if r.Feasible {
				rate = fmt.Sprintf("%.4g", r.Rate)
			}
			cells = []any{name, r.Strategy, seconds(r.StepTime), rate, units.Bytes(most), fmt.Sprintf("%.1f%%", 100*r.Bubble), units.Bytes(r.Traffic), fmt.Sprintf("%.1f s", r.Seconds)}
		}
		if streams {
			cells = append(cells, streamRate(r))
		}
		t.row(cells...)
	}
	pg.table(t)
	if streams {
		writeStream(pg, rows)
	}
	why := map[string][]string{} // rows by the reason that they have in common
	for _, r := range rows {
		if r.Why != "" {
			why[r.Why] = append(why[r.Why], r.Name)
		}
	}
	for _, r := range rows {
		switch {
		case r.Why != "":
			if why[r.Why][0] == r.Name {
				pg.prose(strings.Join(why[r.Why], ", ") + ": " + r.Why)
			}
		case len(r.Order) > 0:
			pg.prosef("%s: ranks on %s, in this order\n", r.Name, strings.Join(r.Order, ", "))
		}
		if r.Why == "" && !r.Feasible {
			pg.prosef("%s: lacks %s\n", r.Name, units.Bytes(r.Missing))
		}
	}
}

// streamRate is the cell of a row's stream.
func streamRate(r strategyRow) string {
	if r.Stream == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4g", r.Stream)
}

// writeStream says which row does most where steps follow one another.
func writeStream(pg *page, rows []strategyRow) {
	var most strategyRow
	for _, r := range rows {
		if r.Stream > most.Stream {
			most = r
		}
	}
	pg.prosef("stream: samples/s in a continuous stream of steps; most by %s, %s\n", most.Name, most.StreamStrategy)
}
