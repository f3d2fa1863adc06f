package cli

import (
	"strings"
	"testing"
)

func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"search", "--objective", ""}, "step\nthroughput\nmemory\n"},
		{[]string{"search", "--methods", "human,pol"}, "human,polish\n"},
		{[]string{"search", "--gpu", "h"}, "h100\nh200\nh200m\n"},
		{[]string{"search", "--train", "a"}, "adam\n"},
		{[]string{"compare", "--methods", "GDP"}, "GDP-one\nGDP-batch\n"},
		{[]string{"compare", "--workload", "gnmt"}, "gnmt2\ngnmt4\ngnmt8\n"},
		{[]string{"search", "--tasks", "place,sch"}, "place,schedule\n"},
		{[]string{"search", "--contention", ""}, "fifo\nfair-share\nnone\n"},
		{[]string{"export", "--to", "sch"}, "schedule\n"},
		{[]string{"compare", "--for", "v"}, "vllm\n"},
		{[]string{"machines", "init", "--gpu", "rtx4090,rtx50"}, "rtx4090,rtx5070\nrtx4090,rtx5080\nrtx4090,rtx5090\n"},
		{[]string{"machines", "init", "--pcie", ""}, "3\n4\n5\n"},
		{[]string{"import", "--as", "cost"}, "costgraph\ncostgraph-text\n"},
		{[]string{"simulate", "--scheduler", "p"}, "plan\n"},
		{[]string{"search", "--robust", ""}, "p90\np95\np99\n"},
		{[]string{"fit", "--offload", "n"}, "never\n"},
		{[]string{"measure", "--clock", "v"}, "virtual\n"},
		{[]string{"bench", "regal", "--task", "s"}, "synthetic\n"},
		{[]string{"pretrain", "--guides", ""}, "all\nnone\n"},
		{[]string{"pretrain", "--workloads", "gnmt"}, "gnmt\n"},
		{[]string{"pretrain", "moves", "--hold-out", "gn"}, "gnmt\n"},
		{[]string{"search", "--runtime", ""}, "kernels\ntorch\n"},
		{[]string{"measure", "--runtime", "t"}, "torch\ntensorflow\n"},
	} {
		got := command(t, append([]string{"__complete"}, c.args...))
		if !strings.HasPrefix(got, c.want+":4\n") {
			t.Errorf("%v: %s, want %s", c.args, got, c.want)
		}
	}
}
