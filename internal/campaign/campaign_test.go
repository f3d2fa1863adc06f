package campaign_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"placer/internal/campaign"
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
	plans, refused := map[string]int{}, 0
	for n := range uint64(*cases) {
		seed := *from + n
		c, err := campaign.Draw(seed)
		if err != nil {
			t.Fatalf("case %d: %v", seed, err)
		}
		o, err := campaign.Run(t.Context(), c)
		if err != nil {
			t.Fatalf("case %d: %v", seed, err)
		}
		for _, f := range o.Faults {
			t.Errorf("case %d: %s", seed, f)
		}
		if len(o.Faults) > 0 && *out != "" {
			if err := c.Save(filepath.Join(*out, fmt.Sprint("case-", seed)), o.Faults); err != nil {
				t.Fatal(err)
			}
		}
		if o.Infeasible {
			refused++
		}
		for m, k := range o.Plans {
			plans[m] += k
		}
		if n%500 == 499 {
			fmt.Printf("campaign: %d cases\n", n+1)
		}
	}
	t.Logf("%d cases, %d refused as infeasible", *cases, refused)
	for _, m := range slices.Sorted(maps.Keys(plans)) {
		t.Logf("%6d plans of %s", plans[m], m)
	}
}
