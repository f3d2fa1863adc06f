package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"placer/graph/train"
	"placer/hw"
	"placer/measure/session"
	"placer/placer/corpus/families"
	"placer/placer/methods"
	"placer/placer/problem"
	"placer/plan"
	"placer/workloads"
)

// flagValues returns what may stand behind flags, by flag or by command and flag.
func flagValues() map[string][]string {
	names := func(all []methods.Method) (n []string) {
		for _, m := range all {
			n = append(n, m.Name)
		}
		return n
	}(methods.Methods())
	var searched, built []string
	for _, m := range methods.ForSearch(methods.Problem{}, methods.Default()) {
		searched = append(searched, m.Name)
	}
	for _, w := range workloads.List() {
		built = append(built, w.Name)
	}
	var cards []string
	for _, c := range hw.Cards() {
		cards = append(cards, c.Name)
	}
	papers, known := families.Names(families.Papers()), families.Names(families.All())
	schedulers := []string{string(problem.CriticalPath), string(problem.FIFO)}
	return map[string][]string{
		"workload": built, "workloads": built, "pretrain workloads": papers, "hold-out": known, "rank": built, "gpu": hw.Names(), "init gpu": cards, "pcie": {"3", "4", "5"},
		"methods": append(names, "search"), "search methods": searched, "against": names,
		"objective": {string(plan.Step), string(plan.Throughput), string(plan.Memory)}, "contention": {"fifo", "fair-share", "none"},
		"scheduler": schedulers, "simulate scheduler": append(schedulers, planOwn), "fusion": {planOwn, "none", "default"},
		"tasks": strings.Split(plan.AllTasks.String(), ","), "granularity": {"op", "cell", "segment", "chain"},
		"train": {train.SGD.String(), train.Momentum.String(), train.Adam.String()}, "evaluator": {byRoofline, byHardware, byBoth}, "runtime": strings.Split(runtimeNames(), ", "), "search runtime": {onKernels, session.Torch},
		"policy-device": {onCPU, onCUDA}, "mode": {"eager", "graph", "both"}, "import as": graphForms, "export to": append([]string{planOwn, "schedule", "split", "pipedream"}, strings.Split(targetNames(), ", ")...),
		"robust": {"p90", "p95", "p99"}, "recompute": {"auto", "never"}, "offload": {"auto", "never"}, "guides": {"all", "none"}, "clock": {"virtual", "wall"}, "regal task": {"synthetic", "time", "memory"},
		"compare for": slices.Sorted(maps.Keys(rivalsFor)), "search for": moduleTargets(),
	}
}

// completeFlags makes shells complete the values of the flags of cmd and of its
// subcommands; of lists the value behind the last comma.
func completeFlags(cmd *cobra.Command, values map[string][]string) {
	for _, sub := range cmd.Commands() {
		completeFlags(sub, values)
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		known := values[cmd.Name()+" "+f.Name]
		if known == nil {
			known = values[f.Name]
		}
		if known == nil {
			return
		}
		err := cmd.RegisterFlagCompletionFunc(f.Name, func(_ *cobra.Command, _ []string, typed string) (all []string, _ cobra.ShellCompDirective) {
			before := typed[:strings.LastIndexByte(typed, ',')+1]
			for _, v := range known {
				if strings.HasPrefix(before+v, typed) {
					all = append(all, before+v)
				}
			}
			return all, cobra.ShellCompDirectiveNoFileComp
		})
		if err != nil {
			panic(err) // a flag that has one already
		}
	})
}

// describeCompletion has the command that cobra adds to root say what it is for, and refuse
// shells that it has no script for. The scripts go to the output that root has by then.
func describeCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		var shells []string
		for _, sub := range cmd.Commands() {
			shells = append(shells, sub.Name())
		}
		cmd.Short = "Print a script by which a shell completes commands, flags and names"
		cmd.Long = "completion prints a script by which a shell completes commands, flags and the names of\n" +
			"methods, workloads, machines and forms. The help of each shell says where to put it."
		cmd.Example = "  source <(placer completion bash)\n  placer completion bash --help"
		cmd.Args = func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("completion %s: want one of %s", args[0], strings.Join(shells, ", "))
			}
			return nil
		}
		cmd.RunE = func(*cobra.Command, []string) error {
			return usagef("say for which shell: placer completion %s", strings.Join(shells, ", "))
		}
	}
}
