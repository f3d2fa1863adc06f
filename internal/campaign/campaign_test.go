package campaign_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"placer/internal/campaign"
	"placer/internal/fsx"
)

var (
	cases  = flag.Int("campaign", 15, "cases to draw")
	from   = flag.Uint64("campaign.from", 1, "first seed")
	out    = flag.String("campaign.out", "", "folder for the cases that fail")
	replay = flag.String("campaign.replay", "", "folder of one saved case to run alone")
)

// TestCampaign: no case of the campaign breaks a rule. make campaign draws 10,000.
func TestCampaign(t *testing.T) {
	if *replay != "" {
		c, err := campaign.Load(*replay)
		if err != nil {
			t.Fatal(err)
		}
		o, err := campaign.Run(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range o.Faults {
			t.Error(f)
		}
		return
	}
	if testing.Short() {
		*cases = min(*cases, 4)
	}
	all := tally{Plans: map[string]int{}, Tried: map[string]int{}}
	for n := range uint64(*cases) {
		seed := *from + n
		c, err := campaign.Draw(seed)
		if err != nil {
			t.Fatalf("case %d: %v", seed, err)
		}
		o := run(t.Context(), c)
		for _, f := range o.Faults {
			t.Errorf("case %d: %s", seed, f)
		}
		if len(o.Faults) > 0 && *out != "" {
			if err := c.Save(filepath.Join(*out, fmt.Sprint("case-", seed)), o.Faults); err != nil {
				t.Fatal(err)
			}
		}
		all.add(o)
		if *out != "" && (n%50 == 49 || n+1 == uint64(*cases)) { // what a stopped campaign has done
			if err := all.write(filepath.Join(*out, fmt.Sprintf("from-%d.json", *from))); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%+v", all)
}

// hangs is how long a case may take, which takes a second or two, before it counts as one that never
// ends.
const hangs = 20 * time.Minute

// run is campaign.Run with errors and panics as faults.
func run(ctx context.Context, c *campaign.Case) (o *campaign.Outcome) {
	defer func() {
		if x := recover(); x != nil {
			o = &campaign.Outcome{Faults: []string{fmt.Sprintf("panic: %v", x)}}
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, hangs)
	defer cancel()
	o, err := campaign.Run(ctx, c)
	if o == nil {
		o = &campaign.Outcome{}
	}
	if err = errors.Join(err, ctx.Err()); err != nil {
		o.Faults = append(o.Faults, err.Error())
	}
	return o
}

// tally is what a campaign came to.
type tally struct {
	Cases, Refused, Failed int
	Plans, Tried           map[string]int
}

func (a *tally) add(o *campaign.Outcome) {
	a.Cases++
	if o.Infeasible {
		a.Refused++
	}
	if len(o.Faults) > 0 {
		a.Failed++
	}
	for m, k := range o.Plans {
		a.Plans[m] += k
	}
	for m, k := range o.Tried {
		a.Tried[m] += k
	}
}

func (a *tally) write(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return fsx.WriteFile(path, func(w io.Writer) error { return json.NewEncoder(w).Encode(a) })
}
