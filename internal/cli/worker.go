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

func (c *console) workerCommand() *cobra.Command {
	var hub, keys, name string
	var slots int
	var measures bool
	var machine machineFlags
	var libraries libraryFlags
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Evaluate placements for searches on other hosts",
		Long: "worker takes placements from a hub, evaluates them and answers, until it is told\n" +
			"to stop. It holds nothing that a search needs: it may be killed and started at any\n" +
			"time, and any number of them may serve one hub. A hub that does not answer yet is\n" +
			"tried once a second, for ten minutes at most; one that goes away later is waited for.",
		Example: "  placer worker --hub nats://hub.example.org:4222 --hardware --machine here.json\n" +
			"  placer worker keys --workers 8 --host hub.example.org -o keys\n" +
			"  placer search --workload gnmt8 --gpus 8 --config hub.json\n" +
			"  placer worker --hub nats://hub.example.org:4222 --hub-keys keys/worker-1",
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case hub == "":
				return usagef("name a hub by --hub")
			case slots < 1 || slots > dispatch.MostSlots:
				return usagef("--slots %d: want 1 to %d", slots, dispatch.MostSlots)
			case measures && cmd.Flags().Changed("slots"):
				return usagef("--slots: with --hardware a worker measures one placement at a time")
			}
			if !measures {
				for _, f := range []string{"machine", "gpu", "gpus", "cpu", "libcuda", "cublas"} {
					if cmd.Flags().Changed(f) {
						return usagef("--%s is about --hardware", f)
					}
				}
			}
			at := dispatch.Address{URL: hub, Keys: keys}
			if err := at.Check(); err != nil {
				return usagef("--hub: %w", err)
			}
			w := dispatch.WorkerConfig{Kinds: []dispatch.Kind{dispatch.Roofline}, Slots: slots, Evaluator: rooflineEvaluator}
			if measures {
				if err := machine.check(cmd); err != nil {
					return err
				}
				if err := machine.checkNamed("--hardware"); err != nil {
					return err
				}
				r, err := c.newHardwareWorker(&machine, libraries)
				if err != nil {
					return err
				}
				defer r.gpus.warm.Close()
				w = r.config()
			}
			return c.work(cmd.Context(), at, name, w, time.Second)
		},
	}
	cmd.Flags().StringVar(&hub, "hub", "", "nats:// URL of the hub")
	cmd.Flags().StringVar(&keys, "hub-keys", "", "this worker's folder of keys")
	cmd.Flags().StringVar(&name, "name", "", "name among the workers (default host and process)")
	cmd.Flags().IntVar(&slots, "slots", runtime.GOMAXPROCS(0), "evaluations at once")
	cmd.Flags().BoolVar(&measures, "hardware", false, "measure on this host's GPUs, one placement at a time, for searches on the machine that the flags name")
	machine.add(cmd.Flags())
	libraries.add(cmd.Flags())
	cmd.AddCommand(c.keysCommand())
	return cmd
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
		Long: "keys makes a folder with a folder 'hub' for the side of the search and a folder\n" +
			"'worker-N' for each worker. A worker's key lets it take jobs and answer them, and\n" +
			"nothing else. The folder 'hub' also holds the configuration of a nats-server of\n" +
			"one's own with the same rights.",
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
