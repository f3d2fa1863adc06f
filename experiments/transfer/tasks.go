package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"placer/baselines/search/fusion"
	"placer/graph/fuse"
	"placer/hw"
	"placer/internal/fsx"
	"placer/placer/policy/sequential"
	"placer/placer/problem"
	"placer/plan"
	"placer/workloads"
)

// tasksFile is the table of all three tasks.
const tasksFile = "tasks.csv"

// taskRow is a case of GO's figure 6 with all three tasks decided zero-shot by 16 plans
// made and all judged. Times are in seconds; 0 stands for what does not fit.
type taskRow struct {
	Workload string  `csv:"workload"`
	GPU      string  `csv:"gpu"`
	Devices  int     `csv:"devices"`
	Default  float64 `csv:"tf_default_s"`
	Place    float64 `csv:"placement_s"` // placement alone, in the order of the longest path, nothing fused
	Rules    float64 `csv:"rules_s"`     // the same placements, everything fused
	Joint    float64 `csv:"joint_s"`     // schedule and fusion by the policy
	Took     float64 `csv:"cpu_seconds"` // of the joint plans, features included
}

func tasksCommand() command {
	return command{"tasks", "judge all three tasks, zero-shot, on the cases of GO's figure 6, into tasks.csv and tasks.md", func(f *flag.FlagSet) func([]string) error {
		out := outFlag(f)
		return judged(func(policies map[string]*sequential.Policy) error { return judgeTasks(policies, *out) })
	}}
}

// judgeTasks judges the cases by the policies that do not know their families. Each family has
// to have one: what is written takes the place of all cases.
func judgeTasks(policies map[string]*sequential.Policy, out string) error {
	families := []string{"trfxl", "rnnlm", "gnmt"}
	for _, family := range families {
		if policies[family] == nil {
			return fmt.Errorf("no policy holds out %s", family)
		}
	}
	var rows []taskRow
	for _, gpu := range []string{"v100", "p100"} {
		for _, family := range families {
			p := policies[family]
			for _, devices := range []int{2, 4, 8} {
				r := taskRow{Workload: fmt.Sprint(family, devices), GPU: gpu, Devices: devices}
				if err := r.judge(p); err != nil {
					return fmt.Errorf("%s on %s: %w", r.Workload, gpu, err)
				}
				fmt.Fprintf(os.Stderr, "%s on %d %s: TensorFlow's default %.4g ms, placement %.4g, everything fused %.4g, joint %.4g in %.1f s\n", r.Workload, devices, gpu, 1e3*r.Default, 1e3*r.Place, 1e3*r.Rules, 1e3*r.Joint, r.Took)
				rows = append(rows, r)
			}
		}
	}
	if err := writeCSV(filepath.Join(out, tasksFile), rows); err != nil {
		return err
	}
	return fsx.WriteFile(filepath.Join(out, strings.TrimSuffix(tasksFile, ".csv")+".md"), func(w io.Writer) error { return writeTasks(w, rows) })
}

// judge fills r by policy.
func (r *taskRow) judge(policy *sequential.Policy) error {
	g, err := workloads.Build(r.Workload)
	if err != nil {
		return err
	}
	m, err := hw.Take(r.GPU, r.Devices, false)
	if err != nil {
		return err
	}
	p, err := problem.New(problem.Source{Graph: g}, m, problem.Options{Tasks: plan.AllTasks})
	if err != nil {
		return err
	}
	one := make([]uint8, g.NumOps())
	if s := p.Evaluator.Evaluate(plan.Decision{Device: one, Fusion: fusion.Default(fuse.NewRules(g), one)}); s.Feasible() {
		r.Default = s.Value
	}
	best := func(tasks plan.Tasks, policy *sequential.Policy) (float64, error) {
		q := p.Problem
		q.Tasks = tasks
		f, err := sequential.NewFeatures(&q)
		if err != nil {
			return 0, err
		}
		samples, err := policy.Direct(context.Background(), f, sequential.DefaultSamples)
		if err != nil {
			return 0, err
		}
		s := sequential.Best(samples).Score
		if !s.Feasible() {
			return 0, nil
		}
		return s.Value, nil
	}
	begin := cpu()
	if r.Joint, err = best(plan.AllTasks, policy); err != nil {
		return err
	}
	r.Took = cpu() - begin
	if r.Rules, err = best(plan.AllTasks, policy.WithoutTasks()); err != nil {
		return err
	}
	r.Place, err = best(plan.Place, policy)
	return err
}

// writeTasks writes the rows and geometric means: of those that fit one device, and of all.
// What does not fit is in no mean.
func writeTasks(w io.Writer, rows []taskRow) error {
	fmt.Fprintln(w, "| case | TF default | placement | everything fused | joint | joint less than TF default | than placement | CPU s |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|---:|---:|---:|")
	var tf, place, rules pairs
	for _, r := range rows {
		fmt.Fprintf(w, "| %s on %s x %d | %s | %s | %s | %s | %s | %s | %.1f |\n", r.Workload, r.GPU, r.Devices,
			fitting(r.Default), fitting(r.Place), fitting(r.Rules), fitting(r.Joint), tf.add(r.Joint, r.Default), place.add(r.Joint, r.Place), r.Took)
		rules.add(r.Joint, r.Rules)
	}
	said := fmt.Sprintf("%s less than placement alone, %s less than with everything fused (all %d)", place.mean(), rules.mean(), len(rows))
	if place.n < len(rows) || rules.n < len(rows) {
		said = fmt.Sprintf("%s less than placement alone (%d of %d), %s less than with everything fused (%d of %d)", place.mean(), place.n, len(rows), rules.mean(), rules.n, len(rows))
	}
	_, err := fmt.Fprintf(w, "\nGeometric means: joint %s less than TensorFlow's default (%d cases that fit one GPU), %s.\n", tf.mean(), tf.n, said)
	return err
}

// fitting writes a step time, 0 where the plan does not fit.
func fitting(seconds float64) string {
	if seconds == 0 {
		return "does not fit"
	}
	return fmt.Sprintf("%.4g ms", 1e3*seconds)
}

// pairs collects step times beside others.
type pairs struct {
	log float64
	n   int
}

// add takes in a pair of which both fit, and writes by how much the first is shorter.
func (x *pairs) add(ours, theirs float64) string {
	if ours == 0 || theirs == 0 {
		return "-"
	}
	x.log += math.Log(ours / theirs)
	x.n++
	return share(100 * (1 - ours/theirs))
}

// mean writes the reduction of the geometric mean.
func (x *pairs) mean() string { return share(100 * (1 - math.Exp(x.log/float64(max(1, x.n))))) }
