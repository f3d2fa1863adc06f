package contiguous_test

import (
	"context"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"placer/baselines/partition/contiguous"
	"placer/graph/formats/dnnpart"
	"placer/graph/formats/foreign"
	"placer/internal/published"
	"placer/sim/throughput"
	"placer/sim/throughput/throughputtest"
)

// publishedInstances hands every throughput instance to check, with the value in column
// of the reference's results.
func publishedInstances(t *testing.T, column int, check func(t *testing.T, s throughput.Source, want float64)) {
	t.Helper()
	dir := published.Folder(t, "dnn-partitioning")
	f, err := os.Open(filepath.Join(dir, "reference_results.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		want, err := strconv.ParseFloat(row[column], 64)
		if err != nil || !strings.HasPrefix(row[0], "throughput") {
			continue
		}
		t.Run(row[0], func(t *testing.T) {
			path := filepath.Join(dir, row[0])
			data, err := foreign.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			x, err := dnnpart.Import(data, path)
			if err != nil {
				t.Fatal(err)
			}
			s := throughputtest.Source(t, x.Instance)
			check(t, s, want)
		})
	}
}

func TestReferenceOptima(t *testing.T) {
	publishedInstances(t, 1, func(t *testing.T, s throughput.Source, want float64) {
		start := time.Now()
		r, err := contiguous.Solve(context.Background(), s, contiguous.Default())
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(start)
		y, err := throughput.New(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		j := y.Evaluate(y.Gather(r.Device))
		t.Logf("%.6g ms (judge %.6g), reference %g; %d blocks, %d downsets, %d pairs, %v", 1e3*r.Seconds, 1e3*j.Seconds, want, r.Blocks, r.Downsets, r.Pairs, took)
		if !r.Optimal || math.Abs(1e3*j.Seconds-want) > 1e-5*want || j.Overflow > 0 {
			t.Errorf("optimal %v, %v ms, want %v", r.Optimal, 1e3*j.Seconds, want)
		}
	})
}

// TestPipeDream is the reference's comparison with PipeDream: biconnected
// components joined, then cuts of a linear order.
func TestPipeDream(t *testing.T) {
	publishedInstances(t, 2, func(t *testing.T, s throughput.Source, want float64) {
		y, err := throughput.New(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		s.Part = contiguous.Layers(s)
		r, err := contiguous.Solve(context.Background(), s, contiguous.Config{Linear: true})
		if err != nil {
			t.Fatal(err)
		}
		j := y.Evaluate(y.Gather(r.Device))
		t.Logf("%d blocks, %.6g ms, reference %g", r.Blocks, 1e3*j.Seconds, want)
		if math.Abs(1e3*j.Seconds-want) > 1e-5*want || j.Overflow > 0 {
			t.Errorf("%v ms, want %v", 1e3*j.Seconds, want)
		}
	})
}
