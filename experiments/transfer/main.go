// Command transfer judges policies on families that they were not trained on: by default
// the 14 rows of GO's table 2, zero-shot and fine-tuned in fewer than 50 steps, beside the
// human expert and the recorded search.
//
//	transfer COMMAND [FLAGS] POLICY...
//
// Every command keeps a line of a CSV file for each run, leaves out what has one, and writes
// a table of all: a stopped run goes on, and one with more seeds adds them.
package main

import (
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"placer/baselines/rules"
	"placer/internal/fsx"
	"placer/placer/policy/sequential"
)

// command is one thing to judge.
type command struct {
	name, doc string
	// set declares its flags and returns what it does with the policy files named behind them.
	set func(f *flag.FlagSet) func(files []string) error
}

// commands returns all that there are.
func commands() []command {
	return []command{rowsCommand(), cardCommand(), proposeCommand(), tasksCommand(), untrainedCommand(), ppoCommand(), ppoTasksCommand(), equalCommand(), ablationCommand(), curveCommand()}
}

func main() {
	if err := judge(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "transfer:", err)
		os.Exit(1)
	}
}

// judge does what the arguments say.
func judge(args []string) error {
	for _, c := range commands() {
		if len(args) > 0 && c.name == args[0] {
			f := flag.NewFlagSet(c.name, flag.ExitOnError)
			do := c.set(f)
			if err := f.Parse(args[1:]); err != nil {
				return err
			}
			return do(f.Args())
		}
	}
	for _, c := range commands() {
		fmt.Fprintf(os.Stderr, "  %-10s %s\n", c.name, c.doc)
	}
	return fmt.Errorf("%q names no command; those above do", args)
}

// outFlag declares the folder of results, and rowsFlag the rows to judge.
func outFlag(f *flag.FlagSet) *string {
	return f.String("o", "experiments/transfer", "folder of results")
}

func rowsFlag(f *flag.FlagSet) *string {
	return f.String("rows", "", "rows to judge, separated by commas; all without it")
}

// judged returns what a command does that judges each row by the policy that holds out its family.
func judged(do func(policies map[string]*sequential.Policy) error) func(files []string) error {
	return func(files []string) error {
		policies, _, err := readPolicies(files)
		if err != nil {
			return err
		}
		return do(policies)
	}
}

// readPolicies reads policy files and returns the policies, and the names of their
// files, by the families that they do not know.
func readPolicies(files []string) (policies map[string]*sequential.Policy, names map[string]string, err error) {
	policies, names = map[string]*sequential.Policy{}, map[string]string{}
	for _, f := range files {
		p, err := readPolicy(f)
		if err != nil {
			return nil, nil, err
		}
		for _, h := range p.Card.HeldOut {
			policies[h], names[h] = p, filepath.Base(f)
		}
	}
	return policies, names, nil
}

const maxPolicy = 16 << 20

// readPolicy reads the policy file at path.
func readPolicy(path string) (*sequential.Policy, error) {
	data, err := fsx.ReadFile(path, maxPolicy)
	if err != nil {
		return nil, err
	}
	return sequential.Read(data, path)
}

// writePolicy writes a policy file, compressed where the path ends in .gz.
func writePolicy(path string, p *sequential.Policy) error {
	return fsx.WriteFile(path, func(w io.Writer) error {
		if filepath.Ext(path) != ".gz" {
			return p.Write(w)
		}
		z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
		if err != nil {
			return err
		}
		if err := p.Write(z); err != nil {
			return err
		}
		return z.Close()
	})
}

func proposeCommand() command {
	return command{"propose", "choose the proposals of policy files anew, on graphs of the families that each knows, and write them into the files", func(*flag.FlagSet) func([]string) error {
		return func(files []string) error {
			for _, f := range files {
				if err := proposeFor(f); err != nil {
					return err
				}
			}
			return nil
		}
	}}
}

// proposeFor chooses the proposals of a policy file.
func proposeFor(path string) error {
	p, err := readPolicy(path)
	if err != nil {
		return err
	}
	c := sequential.DefaultPretrain()
	c.HeldOut = p.Card.HeldOut
	if err := p.Propose(context.Background(), c, rules.Expert()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return writePolicy(path, p)
}

func cardCommand() command {
	return command{"card", "write a policy file with the results in the folder on its card", func(f *flag.FlagSet) func([]string) error {
		folder, to := outFlag(f), f.String("to", "placer/pretrained/policy.safetensors.gz", "file to write")
		return func(files []string) error {
			if len(files) != 1 {
				return fmt.Errorf("card: %d policy files, want one", len(files))
			}
			return writeCard(*folder, files[0], *to)
		}
	}}
}

// writeCard writes policy file from to file to with the results of folder: what
// the same training came to where a family was held out.
func writeCard(folder, from, to string) error {
	rows, err := readCSV[row](filepath.Join(folder, resultsFile))
	if err != nil {
		return err
	}
	p, err := readPolicy(from)
	if err != nil {
		return err
	}
	p.Card.Results = nil
	for _, r := range rows {
		x := sequential.Result{Workload: r.Workload, Devices: r.Devices, HeldOut: true, Greedy: 1 - r.Greedy/r.Human, Best: 1 - r.Best/r.Human}
		if r.TunedSeeds > 0 {
			x.Tuned = 1 - r.Tuned/r.Human
		}
		p.Card.Results = append(p.Card.Results, x)
	}
	return writePolicy(to, p)
}
