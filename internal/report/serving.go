package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"placer/hw"
	"placer/internal/words"
	"placer/placer/serving"
	"placer/units"
)

// servingFormat names the version of Serving as a JSON document.
const servingFormat = "placer serving 1"

// Serving says how many requests the replicas of a language model serve, by each way to divide one.
type Serving struct {
	Format  string       `json:"format"`
	Graph   string       `json:"graph"`
	Machine Machine      `json:"machine"`
	Prompt  int64        `json:"prompt_tokens"`
	Answer  int64        `json:"answer_tokens"`
	Cached  int64        `json:"cached_tokens,omitempty"` // first of a prompt
	TTFT    float64      `json:"most_ttft_s,omitempty"`
	TPOT    float64      `json:"most_tpot_s,omitempty"`
	Rate    float64      `json:"asked_requests_per_s,omitempty"`
	Price   float64      `json:"price_per_gpu_hour,omitempty"`
	Rows    []servingRow `json:"rows"`
	Best    string       `json:"best,omitempty"` // strategy of a row; empty: nothing can be served
	Seconds float64      `json:"seconds"`        // to the answer
	Launch  *Launch      `json:"launch,omitempty"`
	// Disaggregated is there where it was asked for.
	Disaggregated *disaggregated `json:"disaggregated,omitempty"`
	// Assumptions are remarks on the graph's file: what it left open and what was taken.
	Assumptions []string `json:"assumptions,omitempty"`
}

// servingRow is a replica divided in one way.
type servingRow struct {
	Strategy string  `json:"strategy"`
	Devices  int     `json:"devices_per_replica"`
	Batch    int64   `json:"sequences,omitempty"` // of a replica at once
	Limit    string  `json:"limit,omitempty"`     // what keeps it from more
	Prompts  int64   `json:"prompts_per_step,omitempty"`
	Prefill  float64 `json:"prefill_step_s,omitempty"`
	Decode   float64 `json:"decode_step_s,omitempty"`
	TTFT     float64 `json:"ttft_s,omitempty"`
	TPOT     float64 `json:"tpot_s,omitempty"`
	Rate     float64 `json:"requests_per_s_per_replica,omitempty"`
	Tokens   float64 `json:"tokens_per_s_per_device,omitempty"` // of answers
	Fullest  int64   `json:"fullest_bytes,omitempty"`
	Replicas int     `json:"replicas,omitempty"` // on the machine, or for the rate that is asked for
	Cost     float64 `json:"price_per_million_tokens,omitempty"`
	Why      string  `json:"why,omitempty"` // nothing can be served so
}

// DescribeServing describes rows for a graph on m. rate is the requests a second that are asked for, 0 where
// none are; price that of a GPU for an hour.
func DescribeServing(graph string, m *hw.Machine, l serving.Load, rows []serving.Row, rate, price, took float64) *Serving {
	d := &Serving{Format: servingFormat, Graph: graph, Machine: IdentifyMachine(m), Prompt: l.Prompt, Answer: l.Output, Cached: l.Cached, TTFT: l.TTFT, TPOT: l.TPOT, Rate: rate, Price: price, Seconds: took}
	for k := range rows {
		r := &rows[k]
		x := servingRow{Strategy: Division(r), Devices: r.Devices, Why: r.Why}
		if r.Why == "" {
			x.Batch, x.Limit, x.Prompts, x.Prefill, x.Decode, x.TTFT, x.TPOT, x.Rate, x.Fullest = r.Batch, string(r.Limit), r.Prompts, r.Prefill, r.Decode, r.TTFT, r.TPOT, r.Rate, int64(r.Fullest)
			x.Tokens = r.Rate * float64(l.Output) / float64(r.Devices)
			x.Replicas = len(m.Ranks()) / r.Devices
			if rate > 0 {
				x.Replicas = int(math.Ceil(rate / r.Rate))
			}
			if price > 0 {
				x.Cost = price / 3600 / x.Tokens * 1e6
			}
		}
		d.Rows = append(d.Rows, x)
	}
	if best := serving.Best(rows, rate); best != nil {
		d.Best = Division(best)
	}
	return d
}

// disaggregated is prompts and answers on GPUs of their own.
type disaggregated struct {
	Read     *servingRow `json:"read,omitempty"`
	Decode   *servingRow `json:"decode,omitempty"`
	Keys     int64       `json:"transfer_bytes,omitempty"` // of a prompt, from a replica that reads to one that decodes
	Transfer float64     `json:"transfer_s,omitempty"`
	TTFT     float64     `json:"ttft_s,omitempty"`
	TPOT     float64     `json:"tpot_s,omitempty"`
	Rate     float64     `json:"requests_per_s,omitempty"` // of all replicas
	Devices  int         `json:"devices,omitempty"`        // of all replicas
	Tokens   float64     `json:"tokens_per_s_per_device,omitempty"`
	Cost     float64     `json:"price_per_million_tokens,omitempty"`
	More     float64     `json:"more,omitempty"` // requests a second, or GPUs for those asked for, than the best row has, as a share
	Why      string      `json:"why,omitempty"`  // nothing can be served so
}

// Disaggregate adds what prompts and answers on GPUs of their own come to; a is nil where they serve
// nothing.
func (d *Serving) Disaggregate(a *serving.Apart) {
	if a == nil {
		d.Disaggregated = &disaggregated{Why: "no way to divide the GPUs among the two keeps to memory and the limits"}
		return
	}
	x := &disaggregated{Keys: int64(a.Keys), Transfer: a.Transfer, TTFT: a.TTFT(), TPOT: a.TPOT(d.Answer), Rate: a.Rate, Devices: a.Devices()}
	x.Tokens = a.Rate * float64(d.Answer) / float64(x.Devices)
	if d.Price > 0 {
		x.Cost = d.Price / 3600 / x.Tokens * 1e6
	}
	x.Read = &servingRow{Strategy: Division(&a.Read), Devices: a.Read.Devices, Limit: string(a.Read.Limit), Prompts: a.Read.Prompts, Prefill: a.Read.Prefill, Rate: a.Read.Rate, Fullest: int64(a.Read.Fullest), Replicas: a.Readers}
	x.Decode = &servingRow{Strategy: Division(&a.Decode), Devices: a.Decode.Devices, Batch: a.Decode.Batch, Limit: string(a.Decode.Limit), Decode: a.Decode.Decode, Rate: a.Decode.Rate, Fullest: int64(a.Decode.Fullest), Replicas: a.Decoders}
	for _, r := range d.Rows {
		if r.Strategy != d.Best {
			continue
		}
		if x.More = a.Rate/(r.Rate*float64(r.Replicas)) - 1; d.Rate > 0 {
			x.More = float64(x.Devices)/float64(r.Replicas*r.Devices) - 1
		}
	}
	d.Disaggregated = x
}

// Division is the strategy of a row without its micro-batches, which follow from the batch.
func Division(r *serving.Row) string {
	s := r.Strategy
	s.MicroBatches = 1
	return s.String()
}

// Served reports whether something is served.
func (d *Serving) Served() bool {
	return d.Best != "" || d.Disaggregated != nil && d.Disaggregated.Why == ""
}

// WriteText writes d as a table.
func (d *Serving) WriteText(w io.Writer) error {
	pg := newPage(w)
	pg.prosef("%s on %s, %s\n", d.Graph, d.Machine.Name, devices(d.Machine.Devices))
	cached, limits := "", ""
	if d.Cached > 0 {
		cached = fmt.Sprintf(", %d of them cached", d.Cached)
	}
	if d.TTFT > 0 {
		limits += fmt.Sprintf("; first token within %v", seconds(d.TTFT))
	}
	if d.TPOT > 0 {
		limits += fmt.Sprintf("; a token each %v or sooner", seconds(d.TPOT))
	}
	pg.printf("  prompts of %s%s, answers of %d%s\n\n", words.Count(d.Prompt, "token", "tokens"), cached, d.Answer, limits)
	head := []string{"a replica", ">GPUs", ">batch", "limited by", ">TTFT", ">TPOT", ">requests/s", ">tok/s/GPU", ">fullest"}
	if d.Rate > 0 {
		head = append(head, ">needed")
	}
	if d.Price > 0 {
		head = append(head, ">/M tokens")
	}
	t := newTable(head...).fitting("fullest", "requests/s", "limited by")
	var best servingRow
	var unserved []string
	for _, r := range d.Rows {
		if r.Why != "" {
			unserved = append(unserved, r.Strategy+" "+r.Why)
			continue
		}
		name := r.Strategy
		if name == d.Best {
			name, best = name+" *", r
		}
		cells := []any{name, r.Devices, r.Batch, r.Limit, seconds(r.TTFT), seconds(r.TPOT), perSecond(r.Rate), perSecond(r.Tokens), units.Bytes(r.Fullest)}
		if d.Rate > 0 {
			cells = append(cells, r.Replicas*r.Devices)
		}
		if d.Price > 0 {
			cells = append(cells, fmt.Sprintf("%.3g", r.Cost))
		}
		t.row(cells...)
	}
	if d.Best != "" {
		pg.table(t)
	}
	if len(unserved) > 0 {
		pg.prose("not served: " + strings.Join(unserved, "; "))
	}
	if d.Best != "" {
		d.conclude(pg, best)
	}
	if d.Disaggregated != nil {
		d.concludeApart(pg)
	}
	if d.Launch != nil {
		d.Launch.write(pg)
	}
	return pg.err
}

// conclude says what the best row comes to.
func (d *Serving) conclude(pg *page, r servingRow) {
	gpus := r.Replicas * r.Devices
	text := fmt.Sprintf("%s serve %s requests/s, %s tokens/s, as %s", words.Count(gpus, "GPU", "GPUs"), perSecond(r.Rate*float64(r.Replicas)), perSecond(r.Tokens*float64(gpus)), r.replicas())
	if gpus == 1 {
		text = strings.Replace(text, "serve", "serves", 1)
	}
	pg.prosef("%s, with %s at once in each\n", text, words.Count(r.Batch, "sequence", "sequences"))
}

// replicas says how many there are and of what.
func (r *servingRow) replicas() string {
	how := "of " + r.Strategy
	if r.Devices == 1 {
		how = "on one GPU" + r.verb("", " each")
	}
	return words.Count(r.Replicas, "replica", "replicas") + " " + how
}

// verb returns a word of one replica, or of several.
func (r *servingRow) verb(one, several string) string {
	if r.Replicas == 1 {
		return one
	}
	return several
}

// concludeApart says what prompts and answers on GPUs of their own come to.
func (d *Serving) concludeApart(pg *page) {
	x := d.Disaggregated
	if x.Why != "" {
		pg.prosef("disaggregated: %s\n", x.Why)
		return
	}
	against := ""
	switch {
	case d.Best == "":
	case d.Rate > 0:
		against = fmt.Sprintf(", %s GPUs than where replicas do both", moreOrLess(x.More, "fewer", "more"))
	default:
		against = fmt.Sprintf(", %s than where replicas do both", moreOrLess(x.More, "less", "more"))
	}
	pg.prosef("disaggregated: %s serve %s requests/s, %s tokens/s/GPU%s: %s %s prompts, %d a step, and %s %s, with %s at once in each; TTFT %v, TPOT %v; a prompt's keys and values, %v, cross in %v\n",
		words.Count(x.Devices, "GPU", "GPUs"), perSecond(x.Rate), perSecond(x.Tokens), against, x.Read.replicas(), x.Read.verb("reads", "read"), x.Read.Prompts, x.Decode.replicas(), x.Decode.verb("decodes", "decode"), words.Count(x.Decode.Batch, "sequence", "sequences"),
		seconds(x.TTFT), seconds(x.TPOT), units.Bytes(x.Keys), seconds(x.Transfer))
}

// moreOrLess says by how much more or less something is.
func moreOrLess(share float64, less, more string) string {
	if share < 0 {
		return fmt.Sprintf("%.3g%% %s", -100*share, less)
	}
	return fmt.Sprintf("%.3g%% %s", 100*share, more)
}

// perSecond prints a rate: four digits, or all before the point.
func perSecond(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.4g", x)
}
