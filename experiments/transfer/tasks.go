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

// judgeTasks judges the cases by the policies that do not know their families.
func judgeTasks(policies map[string]*sequential.Policy, out string) error {
	var rows []taskRow
	for _, gpu := range []string{"v100", "p100"} {
		for _, family := range []string{"trfxl", "rnnlm", "gnmt"} {
			for _, devices := range []int{2, 4, 8} {
				p := policies[family]
				if p == nil {
					continue
				}
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

// writeTasks writes the rows and the geometric mean of those that fit one device.
func writeTasks(w io.Writer, rows []taskRow) error {
	fmt.Fprintln(w, "| case | TF default | placement | everything fused | joint | joint less than TF default | than placement | CPU s |")
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|---:|---:|---:|")
	sum, place, rules, n := 0.0, 0.0, 0.0, 0
	for _, r := range rows {
		tf, less := "does not fit", "-"
		if r.Default > 0 {
			tf, less = fmt.Sprintf("%.4g ms", 1e3*r.Default), share(100*(1-r.Joint/r.Default))
			sum += math.Log(r.Joint / r.Default)
			n++
		}
		place += math.Log(r.Joint/r.Place) / float64(len(rows))
		rules += math.Log(r.Joint/r.Rules) / float64(len(rows))
		fmt.Fprintf(w, "| %s on %s x %d | %s | %.4g ms | %.4g ms | %.4g ms | %s | %s | %.1f |\n", r.Workload, r.GPU, r.Devices, tf, 1e3*r.Place, 1e3*r.Rules, 1e3*r.Joint, less, share(100*(1-r.Joint/r.Place)), r.Took)
	}
	_, err := fmt.Fprintf(w, "\nGeometric means: joint %.1f%% less than TensorFlow's default (%d cases that fit one GPU), %.1f%% less than placement alone, %.1f%% less than with everything fused (all %d).\n",
		100*(1-math.Exp(sum/float64(max(1, n)))), n, 100*(1-math.Exp(place)), 100*(1-math.Exp(rules)), len(rows))
	return err
}
