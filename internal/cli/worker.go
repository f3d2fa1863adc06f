//go:build !light

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"placer/internal/dispatch"
	"placer/internal/words"
)

// workerFlags are the flags of worker.
type workerFlags struct {
	hub       dispatch.Address
	name      string
	slots     int
	measures  bool
	machine   machineFlags // with measures, as libraries
	libraries libraryFlags
}

func (c *console) workerCommand() *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Evaluate placements for searches on other hosts",
		Long: "worker takes placements from a hub, evaluates them and answers, until it is stopped.\n" +
			"It holds no state that a search needs: it may be killed and started at any time, and\n" +
			"any number of workers may serve one hub. If the hub does not answer yet, the worker\n" +
			"tries again once a second, for ten minutes at most; if the hub goes away later, the\n" +
			"worker waits for it.",
		Example: "  placer worker --hub nats://hub.example.org:4222 --hardware --machine here.json\n" +
			"  placer worker keys --workers 8 --host hub.example.org -o keys\n" +
			"  placer search --workload gnmt8 --gpus 8 --config hub.json\n" +
			"  placer worker --hub nats://hub.example.org:4222 --hub-keys keys/worker-1",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return c.worker(cmd.Context(), &f)
		},
	}
	cmd.Flags().StringVar(&f.hub.URL, "hub", "", "nats:// URL of the hub")
	cmd.Flags().StringVar(&f.hub.Keys, "hub-keys", "", "this worker's folder of keys")
	cmd.Flags().StringVar(&f.name, "name", "", "name among the workers (default host and process)")
	cmd.Flags().IntVar(&f.slots, "slots", runtime.GOMAXPROCS(0), "evaluations at once")
	cmd.Flags().BoolVar(&f.measures, "hardware", false, "measure on this host's GPUs, one placement at a time, for searches on the machine that the flags name")
	f.machine.add(cmd.Flags())
	f.libraries.add(cmd.Flags())
	cmd.AddCommand(c.keysCommand())
	return cmd
}

// check reports the first fault.
func (f *workerFlags) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case f.hub.URL == "":
		return usagef("name a hub by --hub")
	case f.slots < 1 || f.slots > dispatch.MostSlots:
		return usagef("--slots %d: want 1 to %d", f.slots, dispatch.MostSlots)
	case f.measures && changed("slots"):
		return usagef("--slots: with --hardware a worker measures one placement at a time")
	}
	if !f.measures {
		for _, name := range []string{"machine", "gpu", "gpus", "cpu", "libcuda", "cublas"} {
			if changed(name) {
				return usagef("--%s is about --hardware", name)
			}
		}
	}
	if err := f.hub.Check(); err != nil {
		return usagef("--hub: %w", err)
	}
	if !f.measures {
		return nil
	}
	if err := f.machine.check(cmd); err != nil {
		return err
	}
	return f.machine.checkNamed("--hardware")
}

// worker serves the hub by simulation, or by measuring.
func (c *console) worker(ctx context.Context, f *workerFlags) error {
	w := dispatch.WorkerConfig{Kinds: []dispatch.Kind{dispatch.Roofline}, Slots: f.slots, Evaluator: rooflineEvaluator}
	if f.measures {
		r, err := c.newHardwareWorker(&f.machine, f.libraries)
		if err != nil {
			return err
		}
		defer r.gpus.warm.Close()
		w = r.config()
	}
	return c.work(ctx, f.hub, f.name, w, time.Second)
}

// hubTries is how often a hub that does not answer is tried.
const hubTries = 600

// work serves the hub until ctx ends; a hub that is not there yet is tried again after wait.
func (c *console) work(ctx context.Context, a dispatch.Address, name string, w dispatch.WorkerConfig, wait time.Duration) error {
	if name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "worker"
		}
		name = fmt.Sprintf("%s-%d", fileName(host), os.Getpid())
	}
	w.Name, w.Log = name, c.say
	for tries := 1; ; tries++ {
		err := dispatch.Work(ctx, a, w)
		if err == nil || ctx.Err() != nil {
			c.say("worker %s stops", name)
			return nil
		}
		if !errors.Is(err, dispatch.ErrUnreachable) {
			return err
		}
		if tries == hubTries {
			return fmt.Errorf("%w; it was tried %d times", err, tries)
		}
		if tries == 1 {
			c.say("%v; trying again every %v, %d times at most", err, wait, hubTries)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

func (c *console) keysCommand() *cobra.Command {
	var out string
	k := dispatch.DefaultKeys()
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "Make keys and certificates for a hub and its workers",
		Long: "keys makes a folder with a folder 'hub' for the search and a folder 'worker-N' for\n" +
			"each worker. A worker's key lets it take jobs and answer them, and nothing else. The\n" +
			"folder 'hub' also holds the configuration of a separate nats-server with the same\n" +
			"rights.",
		RunE: func(*cobra.Command, []string) error {
			if out == "" {
				return usagef("name the folder to make by -o")
			}
			if err := k.Validate(); err != nil {
				return usage(err)
			}
			if err := dispatch.WriteKeys(out, k, time.Now()); err != nil {
				return err
			}
			c.say("keys for a hub and %s in %s; they are secret", words.Count(k.Workers, "worker", "workers"), out)
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "folder to make")
	cmd.Flags().IntVar(&k.Workers, "workers", k.Workers, "workers")
	cmd.Flags().StringSliceVar(&k.Hosts, "host", k.Hosts, "names and addresses under which workers reach the hub")
	cmd.Flags().DurationVar(&k.Valid, "valid", k.Valid, "time for which the certificates are good")
	return cmd
}
