package strategies

import (
	"compress/gzip"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"placer/graph/strategy"
	"placer/hw"
	"placer/internal/published"
	"placer/units"
)

// TestMeasuredAllReduce compares all-reduces on a DGX A100 with measured ones (Vidur's
// net_a100_dgx_all_reduce, NCCL on 2, 4 and 8 GPUs of one host, sizes as bytes). The latency of the
// machine's sends comes from its send_recv, all else is NCCL's own model and NCCL's developers' word.
func TestMeasuredAllReduce(t *testing.T) {
	file, err := os.Open(filepath.Join(published.Folder(t, "gpu-perf-data"), "vidur/net_a100_dgx_all_reduce.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for k, name := range rows[0] {
		at[name] = k
	}
	number := func(row []string, name string) float64 {
		x, err := strconv.ParseFloat(row[at[name]], 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, d := range []int{2, 4, 8} {
		m, err := hw.Take("a100", d, false)
		if err != nil {
			t.Fatal(err)
		}
		j, err := NewJudge(source(), m)
		if err != nil {
			t.Fatal(err)
		}
		ranges := []struct {
			from, to  float64 // bytes
			n         int
			sum, bias float64
		}{{from: 1e5, to: 1e6}, {from: 1e6, to: 8e6}, {from: 8e6, to: 16e6}, {from: 16e6, to: 32e6}, {from: 32e6, to: 1e8}, {from: 8e6, to: 1e8}}
		for _, row := range rows[1:] {
			size := number(row, "size")
			if int(number(row, "num_workers")) != d || int(number(row, "devices_per_node")) != d || size < ranges[0].from {
				continue
			}
			got, err := j.collectiveSeconds(strategy.Mesh{Data: d, Pipeline: 1, Tensor: 1}, strategy.Collective{Kind: strategy.AllReduce, Bytes: units.Bytes(size), Ranks: d})
			if err != nil {
				t.Fatal(err)
			}
			e := got/(1e-3*number(row, "time_stats.all_reduce.median")) - 1
			for k := range ranges {
				if r := &ranges[k]; size >= r.from && size < r.to {
					r.n, r.sum, r.bias = r.n+1, r.sum+math.Abs(e), r.bias+e
				}
			}
		}
		for _, r := range ranges {
			if r.n == 0 {
				t.Fatalf("no rows of %d GPUs from %g to %g bytes", d, r.from, r.to)
			}
			t.Logf("%d GPUs: %d sizes from %.1f to %.1f MB, mean error %.1f%%, bias %+.1f%%", d, r.n, r.from/1e6, r.to/1e6, 100*r.sum/float64(r.n), 100*r.bias/float64(r.n))
		}
		for k, limit := range map[int]map[int]float64{2: {0: 0.7, 1: 0.45, 5: 0.35}, 4: {0: 0.45, 1: 0.35, 5: 0.3}, 8: {0: 0.4, 1: 0.25, 5: 0.3}}[d] {
			if r := ranges[k]; r.sum/float64(r.n) > limit {
				t.Errorf("%d GPUs from %.1f to %.1f MB: mean error %.1f%%, want at most %.0f%%", d, r.from/1e6, r.to/1e6, 100*r.sum/float64(r.n), 100*limit)
			}
		}
	}
}
