package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"placer/hw"
	hwbench "placer/hw/bench"
	"placer/hw/nvml"
	"placer/internal/bench"
	"placer/internal/fsx"
	"placer/internal/report"
	"placer/internal/report/web"
	"placer/units"
)

func (c *console) benchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure hardware, or repeat the comparisons of a paper",
		RunE: func(*cobra.Command, []string) error {
			return usagef("say which: placer bench go-table3, go-figure6, hw, steps, policy, regal, dnn-partitioning or doppler")
		},
	}
	cmd.AddCommand(c.benchTable3Command(), c.benchFigure6Command(), c.benchHardwareCommand(), c.benchPolicyCommand(), c.benchStepsCommand(), c.benchRegalCommand(), c.benchPartitioningCommand(), c.benchDopplerCommand())
	return cmd
}

// bench returns what experiments have of the outer world.
func (c *console) bench() bench.Host {
	return bench.Host{Clock: c.clock, Thread: threadSeconds, Log: c.progressLine}
}

// progressLine writes a line of progress to stderr.
func (c *console) progressLine(format string, a ...any) {
	if !c.quiet {
		fmt.Fprintf(c.err, "%7.1f s  "+format+"\n", append([]any{c.clock()}, a...)...)
	}
}

type benchFlags struct {
	libraries libraryFlags
	gpus      []int
	out, file string
	html      string
	name      string
	repeats   int
	calibrate bool
	quick     bool
	cpu       bool
	json      bool
}

func (c *console) benchHardwareCommand() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "hw",
		Short: "Measure this host's GPUs and the links between them",
		Long: "hw measures every GPU: rates of matrix products by element type over a grid of\n" +
			"shapes, memory bandwidth, launch times, transfers from and to the host, and the\n" +
			"bandwidth and latency between each two GPUs. It prints tables and writes a machine\n" +
			"file for 'search --machine'. Without a GPU it exits with code 4.",
		Example: "  placer bench hw --calibrate -o hardware.json --machine-file here.json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(checkOutput(f.out, f.json), fileOnly("--machine-file", f.file), fileOnly("--html", f.html)); err != nil {
				return err
			}
			return c.benchHardware(cmd.Context(), &f)
		},
	}
	f.libraries.add(cmd.Flags())
	cmd.Flags().IntSliceVar(&f.gpus, "gpus", nil, "measure these GPUs, as 0,1; all without it")
	alias(cmd.Flags(), "out", "output")
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "write all that was measured there (JSON); - writes it to stdout instead of the tables")
	cmd.Flags().StringVar(&f.file, "machine-file", "", "write the machine there")
	cmd.Flags().StringVar(&f.html, "html", "", "write a web page with the roofline of each card there")
	cmd.Flags().StringVar(&f.name, "name", "here", "name of the machine")
	cmd.Flags().IntVar(&f.repeats, "repeats", hwbench.Default().Repeats, "timed repeats, of which the median counts")
	cmd.Flags().BoolVar(&f.calibrate, "calibrate", false, "fit the roofline's constants to the figures and print its errors")
	cmd.Flags().BoolVar(&f.quick, "quick", false, "shorter repeats, fewer shapes, smaller messages")
	cmd.Flags().BoolVar(&f.cpu, "cpu", true, "make the host's CPU a device of the machine file too")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

func (c *console) benchHardware(ctx context.Context, f *benchFlags) error {
	d, b, err := c.hardware.open(f.libraries.CUDA, f.libraries.CUBLAS)
	if err != nil {
		return err
	}
	cfg := hwbench.Default()
	cfg.Repeats = f.repeats
	if f.quick {
		cfg.Target, cfg.Buffer = 2e-4, 256<<20
		cfg.Messages = cfg.Messages[:7]
	}
	cfg.Progress = func(what string) {
		if !c.quiet {
			c.note("measuring %s", what)
		}
	}
	monitor, unwatched := c.hardware.watch()
	if unwatched == nil {
		defer monitor.Close()
		cfg.State = monitor.Read
	}
	r, err := hwbench.Run(ctx, cfg, d, b, f.gpus)
	if err != nil && len(r.Devices) == 0 {
		return err
	}
	interrupted := err // by the user, or by something that could not be measured
	if err != nil && !errors.Is(err, context.Canceled) {
		r.Notes = append(r.Notes, "not all could be measured: "+err.Error())
	}
	if unwatched != nil {
		r.Notes = append(r.Notes, "clocks were not watched: "+unwatched.Error())
	}
	r.Date = c.now().UTC().Format(time.RFC3339)
	if inv, err := c.hardware.detect(); err == nil {
		r.Driver = inv.Driver
	}
	canceled := errors.Is(interrupted, context.Canceled)
	if !canceled && f.calibrate {
		interrupted = errors.Join(interrupted, r.Calibrate())
	}
	errs := []error{interrupted, c.save(f.out, f.json, report.Hardware{Result: r})}
	if !canceled && f.file != "" {
		errs = append(errs, f.writeMachine(r, interrupted != nil))
	}
	if f.html != "" {
		errs = append(errs, c.writePage(f.html, func(w io.Writer) error { return web.WriteHardware(w, r) }))
	}
	return errors.Join(errs...)
}

// writeMachine writes the machine that r has measured. Where not all could be measured it
// does without the CPU: transfers from the host may be what is missing.
func (f *benchFlags) writeMachine(r *hwbench.Result, partly bool) error {
	m, err := r.Machine(f.name, f.host())
	if err != nil && partly {
		m, err = r.Machine(f.name, nil)
	}
	if err != nil {
		return fmt.Errorf("no machine file: %w", err)
	}
	return fsx.WriteFile(f.file, m.Write)
}

// host returns the CPU as a device, or nil.
func (f *benchFlags) host() *hw.Device {
	if !f.cpu {
		return nil
	}
	h := thisHost()
	if h.Cores == 0 || h.Memory < units.Bytes(1<<20) {
		return nil
	}
	d := h.Device()
	return &d
}

// monitor reads how GPUs fare.
type monitor interface {
	Read(uuid string) (nvml.State, error)
	Close() error
}
