package strategies_test

import (
	"context"
	"flag"
	"fmt"
	"testing"

	"placer/internal/campaign/strategies"
)

var (
	cases = flag.Int("campaign", 6, "cases to draw")
	from  = flag.Uint64("campaign.from", 1, "first seed")
)

// TestCampaign: no case of the campaign breaks a rule. make campaign-strategies draws more.
func TestCampaign(t *testing.T) {
	rows := 0
	for n := range uint64(*cases) {
		c, err := strategies.Draw(*from + n)
		if err != nil {
			t.Fatalf("case %d: %v", *from+n, err)
		}
		faults, some := faultsOf(t.Context(), c)
		for _, f := range faults {
			t.Errorf("case %d, %v: %s", c.Seed, c, f)
		}
		rows += some
	}
	t.Logf("%d cases, %d rows", *cases, rows)
	if rows < *cases {
		t.Errorf("%d rows of %d cases", rows, *cases)
	}
}

// faultsOf is c.Faults with errors and panics as faults.
func faultsOf(ctx context.Context, c *strategies.Case) (faults []string, rows int) {
	defer func() {
		if x := recover(); x != nil {
			faults = append(faults, fmt.Sprintf("panic: %v", x))
		}
	}()
	faults, rows, err := c.Faults(ctx)
	if err != nil {
		faults = append(faults, err.Error())
	}
	return faults, rows
}
