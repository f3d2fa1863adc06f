package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"placer/internal/fsx"
	"placer/placer/policy/sequential"
	"placer/plan"
)

// ablationRows are the rows of table 2 on which policies with a part left out are judged,
// with their devices: one of each family held out.
var ablationRows = []equalCase{
	{workload: "gnmt2", gpu: "p100", devices: 2}, {workload: "inception", gpu: "p100", devices: 2}, {workload: "amoebanet", gpu: "p100", devices: 4},
}

// ablationRun is a line of runs.csv of the ablation. Times are in seconds.
type ablationRun struct {
	Variant  string  `csv:"variant"` // the part left out; "whole": none; "encoder": all of the encoder; or PROBLEMSxWIDTH
	Seed     int     `csv:"seed"`    // of training
	Workload string  `csv:"workload"`
	Human    float64 `csv:"human_s"`
	Direct   float64 `csv:"direct_16_s"`
	Drafts   float64 `csv:"best_of_16_s"`
	Joint    float64 `csv:"joint_16_s"` // all three tasks, 16 plans made and all judged
	Untaught float64 `csv:"rules_16_s"` // the same, schedule and fusion as without learning
}

func ablationCommand() command {
	return command{"ablation", "judge policies in folders VARIANT-SEED, with parts of the network left out, into runs.csv and " + tableFile, variants(writeAblation)}
}

// variants returns what a command does that judges policies in folders.
func variants(write func(io.Writer, []ablationRun) error) func(*flag.FlagSet) func([]string) error {
	return func(f *flag.FlagSet) func([]string) error {
		out := outFlag(f)
		return func(files []string) error { return judgeVariants(files, *out, write) }
	}
}

// judgeVariants judges the policies of files, each in a folder VARIANT-SEED, and writes
// runs.csv and, by write, table.md. What runs.csv has is kept.
func judgeVariants(files []string, out string, write func(io.Writer, []ablationRun) error) error {
	path := filepath.Join(out, equalFile)
	runs, err := readCSV[ablationRun](path)
	if err != nil {
		return err
	}
	for _, c := range ablationRows {
		alone, human, err := c.problem(plan.Place)
		if err != nil {
			return err
		}
		joint, _, err := c.problem(plan.AllTasks)
		if err != nil {
			return err
		}
		for _, file := range files {
			name := filepath.Base(filepath.Dir(file))
			at := strings.LastIndex(name, "-")
			if at < 0 {
				return fmt.Errorf("%s: its folder is not named VARIANT-SEED", file)
			}
			r := ablationRun{Variant: name[:at], Workload: c.workload, Human: human}
			if r.Seed, err = strconv.Atoi(name[at+1:]); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if slices.ContainsFunc(runs, func(x ablationRun) bool {
				return x.Variant == r.Variant && x.Seed == r.Seed && x.Workload == r.Workload
			}) {
				continue
			}
			policy, err := readPolicy(file)
			if err != nil {
				return err
			}
			family := strings.TrimRight(c.workload, "0123456789")
			if !slices.Contains(policy.Card.HeldOut, family) {
				return fmt.Errorf("%s has seen %s", file, family)
			}
			if err := r.judge(policy, alone, joint); err != nil {
				return fmt.Errorf("%s: %s: %w", file, c.workload, err)
			}
			fmt.Fprintf(os.Stderr, "%s, %s: direct %.1f%%, drafts %.1f%%, joint %.4g ms\n", name, r.Workload, percent(r.Direct, human), percent(r.Drafts, human), 1e3*r.Joint)
			runs = append(runs, r)
			if err := writeCSV(path, runs); err != nil {
				return err
			}
		}
	}
	return fsx.WriteFile(filepath.Join(out, tableFile), func(w io.Writer) error { return write(w, runs) })
}

// judge fills r by policy.
func (r *ablationRun) judge(policy *sequential.Policy, alone, joint *plan.Problem) error {
	p := *alone
	p.Seed = uint64(r.Seed)
	for _, x := range []struct {
		to     *float64
		p      *plan.Problem
		sample func(context.Context, *sequential.Features, int) ([]sequential.Sample, error)
	}{
		{&r.Direct, &p, policy.Direct}, {&r.Drafts, &p, policy.ZeroShot},
		{&r.Joint, joint, policy.Direct}, {&r.Untaught, joint, policy.WithoutTasks().Direct},
	} {
		f, err := sequential.NewFeatures(x.p)
		if err != nil {
			return err
		}
		samples, err := x.sample(context.Background(), f, sequential.DefaultSamples)
		if err != nil {
			return err
		}
		*x.to = seconds(sequential.Best(samples).Score)
	}
	return nil
}

// studentT are the quantiles of 97.5% for n-1 degrees of freedom, by n.
var studentT = map[int]float64{2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571}

// interval writes the mean of x and its interval of 95%.
func interval(x []float64) string {
	n, mean, square := float64(len(x)), 0.0, 0.0
	for _, v := range x {
		mean += v / n
	}
	if studentT[len(x)] == 0 {
		return fmt.Sprintf("%.1f", mean)
	}
	for _, v := range x {
		square += (v - mean) * (v - mean) / (n - 1)
	}
	return fmt.Sprintf("%.1f ± %.1f", mean, studentT[len(x)]*math.Sqrt(square/n))
}

// writeAblation writes a line for each variant: reductions of the step against the
// expert's, in percent, geometric means over rows, means over training seeds with
// intervals of 95%, and differences from the whole network, by seed.
func writeAblation(w io.Writer, runs []ablationRun) error {
	columns := []struct {
		name string
		of   func(*ablationRun) float64
	}{
		{"16 made, all judged", func(r *ablationRun) float64 { return r.Direct }},
		{"best of 16 drafts", func(r *ablationRun) float64 { return r.Drafts }},
		{"all tasks", func(r *ablationRun) float64 { return r.Joint }},
		{"all tasks, schedule and fusion by rule", func(r *ablationRun) float64 { return r.Untaught }},
	}
	var variants []string
	var seeds []int
	for i := range runs {
		if !slices.Contains(variants, runs[i].Variant) {
			variants = append(variants, runs[i].Variant)
		}
		if !slices.Contains(seeds, runs[i].Seed) {
			seeds = append(seeds, runs[i].Seed)
		}
	}
	slices.Sort(seeds)
	fmt.Fprint(w, "| left out | seeds |")
	for _, c := range columns {
		fmt.Fprintf(w, " %s | worth |", c.name)
	}
	fmt.Fprintln(w, "\n|---|---:|"+strings.Repeat("---:|", 2*len(columns)))
	order := []string{"whole", "encoder"}
	order = append(append(order, sequential.Parts()...), "guides", "untrained", "untrained-guides")
	for _, v := range order {
		if !slices.Contains(variants, v) {
			continue
		}
		name, line, n := v, "", 0
		switch v {
		case "whole":
			name = "nothing"
		case "untrained":
			name = "all training"
		case "untrained-guides":
			name = "guides and all training"
		}
		for _, c := range columns {
			var mine, worth []float64
			for _, seed := range seeds {
				whole, rows := reduction(runs, "whole", seed, c.of)
				x, mineRows := reduction(runs, v, seed, c.of)
				if mineRows < len(ablationRows) {
					continue
				}
				mine = append(mine, x)
				if rows == len(ablationRows) {
					worth = append(worth, whole-x)
				}
			}
			n = len(mine)
			paid := "-"
			if v != "whole" && len(worth) > 0 {
				paid = interval(worth)
			}
			line += fmt.Sprintf(" %s | %s |", interval(mine), paid)
		}
		fmt.Fprintf(w, "| %s | %d |%s\n", name, n, line)
	}
	return nil
}

// reduction is that of the geometric mean over rows of a variant's runs of a seed, in
// percent, and the number of rows.
func reduction(runs []ablationRun, variant string, seed int, of func(*ablationRun) float64) (percent float64, rows int) {
	sum := 0.0
	for i := range runs {
		if r := &runs[i]; r.Variant == variant && r.Seed == seed {
			sum += math.Log(of(r) / r.Human)
			rows++
		}
	}
	return 100 * (1 - math.Exp(sum/float64(max(1, rows)))), rows
}
