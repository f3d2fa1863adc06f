package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"placer/gpu"
	"placer/hw/nvml"
	"placer/measure"
	"placer/placer"
	"placer/sim"
	"placer/times"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInfeasible  = 3 // no placement that fits was found, or the plan given does not fit
	exitNoDevice    = 4 // a device that the command needs is not there
	exitInterrupted = 130
)

// Main runs the program with the arguments behind its name and returns its exit
// code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	start := time.Now()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program at once.
	context.AfterFunc(ctx, stop)
	c := &console{in: stdin, out: stdout, err: stderr, clock: func() float64 { return time.Since(start).Seconds() }, cpu: processSeconds, hardware: realHardware(), now: time.Now}
	return c.run(ctx, args)
}

// console is what the commands have of the outer world.
type console struct {
	in         io.Reader
	out, err   io.Writer
	clock, cpu func() float64
	now        func() time.Time
	hardware   hardware
	quiet      bool
	verbose    bool
}

func (c *console) run(ctx context.Context, args []string) int {
	root := c.root()
	root.SetArgs(args)
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	err := unknownCommand(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	code := exitCode(err)
	if err != nil && !errors.Is(err, errQuiet) {
		fmt.Fprintf(c.err, "placer: %s\n", oneLine(err.Error()))
	}
	return code
}

// oneLine joins the lines of a message: errors.Join puts each on its own.
func oneLine(s string) string { return strings.Join(strings.Split(strings.TrimSpace(s), "\n"), "; ") }

// usageError is a mistake in the command line.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

// errQuiet marks errors that have been told already.
var errQuiet = errors.New("told already")

// exclusive makes it a usage error to name more than one of the flags.
func exclusive(cmd *cobra.Command, names ...string) {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var named []string
		for _, n := range names {
			if cmd.Flags().Changed(n) {
				named = append(named, "--"+n)
			}
		}
		if len(named) > 1 {
			return usagef("%s exclude each other", strings.Join(named, " and "))
		}
		return run(cmd, args)
	}
}

// interrupted is a command that was stopped before it had anything to show.
type interrupted struct{ message string }

func (i interrupted) Error() string { return i.message }

// Unwrap makes it the end of a context.
func (interrupted) Unwrap() error { return context.Canceled }

// errInfeasible marks results that do not fit.
var errInfeasible = errors.New("infeasible")

func exitCode(err error) int {
	var usage usageError
	var infeasible *sim.Infeasible
	var outOfMemory *measure.OutOfMemory
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &infeasible), errors.As(err, &outOfMemory), errors.Is(err, errInfeasible), errors.Is(err, placer.ErrNoPlacement), errors.Is(err, times.ErrNowhere):
		return exitInfeasible
	case errors.Is(err, gpu.ErrNoDevice), errors.Is(err, gpu.ErrNoBLAS), errors.Is(err, nvml.ErrNoLibrary):
		return exitNoDevice
	}
	return exitFailed
}

func (c *console) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "placer",
		Short: "Decide which device runs each op of a neural network",
		Long: "placer takes a neural network's computation graph and a machine, and finds which\n" +
			"device should run each op. It compares a learned policy with searches and with\n" +
			"rules of thumb under one simulator, beside a proven lower bound.",
		Example:           "  placer search --workload gnmt8 --gpus 8\n  placer search --graph model.onnx --train adam --gpus 2 --budget 30s\n  placer workloads",
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.PersistentFlags().BoolVarP(&c.quiet, "quiet", "q", false, "print no progress")
	root.PersistentFlags().BoolVarP(&c.verbose, "verbose", "v", false, "print more on stderr")
	root.AddCommand(c.searchCommand(), c.compareCommand(), c.workerCommand(), c.simulateCommand(), c.importCommand(), c.exportCommand(), c.pipelineCommand(), c.workloadsCommand(), c.machinesCommand(), c.benchCommand(), c.versionCommand())
	root.AddCommand(c.placeCommand(), c.finetuneCommand(), c.pretrainCommand())
	for _, sub := range root.Commands() {
		sub.Args = noArguments
	}
	root.AddCommand(c.measureCommand())
	return root
}

// unknownCommand reports a first word that names no command: cobra would rather
// complain of the flags behind it.
func unknownCommand(root *cobra.Command, args []string) error {
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			continue // all flags before a command are switches
		}
		if a == "help" || strings.HasPrefix(a, "__complete") || a == "completion" {
			return nil
		}
		for _, sub := range root.Commands() {
			if sub.Name() == a {
				return nil
			}
		}
		root.SuggestionsMinimumDistance = 2
		if s := root.SuggestionsFor(a); len(s) > 0 {
			return usagef("unknown command %q, did you mean %s?", a, strings.Join(s, " or "))
		}
		return usagef("unknown command %q; placer --help lists them", a)
	}
	return nil
}
