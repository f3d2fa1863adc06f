package balance_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"placer/baselines/balance"
	"placer/baselines/contiguous"
	"placer/graph/dnnpart"
	"placer/internal/foreign"
	"placer/maxload"
)

func TestExplore(t *testing.T) {
	dir := os.Getenv("PLACER_DATA")
	files, _ := filepath.Glob(filepath.Join(dir, "dnn-partitioning/throughput-inputs/*/*.json"))
	for _, path := range files {
		data, err := foreign.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		x, err := dnnpart.Import(data, path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := x.Times.Machine()
		if err != nil {
			t.Fatal(err)
		}
		s, err := maxload.FromTable(x.Graph, m, x.Times)
		if err != nil {
			t.Fatal(err)
		}
		r, err := contiguous.Solve(context.Background(), s, contiguous.Default())
		if err != nil {
			t.Fatal(err)
		}
		y, _ := maxload.New(s)
		for _, seed := range []uint64{1, 2} {
			c := balance.Default()
			c.Seed = seed
			start := time.Now()
			block, sec := balance.Search(context.Background(), y, y.Gather(r.Device), c, nil)
			j := y.Judge(block)
			t.Logf("%s: contiguous %.5f, any %.5f (%.5f) %v; %d blocks %d nets, bound %.5f gap %.1f%%", filepath.Base(path), 1e3*r.Seconds, 1e3*sec, 1e3*j.Seconds, time.Since(start), y.NumBlocks(), len(y.Nets), 1e3*y.Bound(sec), 100*(sec/y.Bound(sec)-1))
		}
	}
}
