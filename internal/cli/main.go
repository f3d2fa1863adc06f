package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"placer/graph/formats/times"
	"placer/hw/gpu"
	"placer/hw/nvml"
	"placer/internal/bench"
	"placer/internal/parallel"
	"placer/internal/spell"
	"placer/measure"
	"placer/measure/python"
	"placer/placer/problem"
	"placer/placer/search"
	"placer/sim"
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
	return newConsole(stdin, stdout, stderr).main(args)
}

// newConsole returns the outer world of this process.
func newConsole(stdin io.Reader, stdout, stderr io.Writer) *console {
	start := time.Now()
	return &console{in: stdin, out: stdout, err: stderr, clock: func() float64 { return time.Since(start).Seconds() }, cpu: processSeconds, hardware: realHardware(), now: time.Now}
}

// main runs a command until it ends or a signal stops it.
func (c *console) main(args []string) int {
	ignoreFileLimit()
	c.err = unbroken(c.err)
	signalled, stop := signal.NotifyContext(context.Background(), endingSignals()...)
	defer stop()
	// The program's own context is cancelled as any is: what signal it was is nobody's cause.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	context.AfterFunc(signalled, func() {
		cancel()
		time.AfterFunc(sameSignal, stop) // then a second signal ends the program at once
	})
	return c.run(ctx, args)
}

// sameSignal is how long a signal is the first one still: timeout(1), schedulers and terminals
// send one to a program and to its group, so that it comes twice.
const sameSignal = 500 * time.Millisecond

// console is what the commands have of the outer world.
type console struct {
	in         io.Reader
	out, err   io.Writer
	clock, cpu func() float64
	now        func() time.Time
	hardware   hardware
	quiet      bool
	verbose    bool
	wide       bool
	told       []string        // notes on inputs that have been written
	saying     sync.Mutex      // a worker's evaluations say what happens to them all at once
	untold     []string        // notes on what follows, for which there was nothing to follow yet
	args       []string        // behind the command's name
	stopped    <-chan struct{} // closed when the command is to stop; nil: never
}

func (c *console) run(ctx context.Context, args []string) int {
	c.stopped = ctx.Done()
	root := c.root()
	root.SetArgs(args)
	root.SetIn(c.in)
	help := &remembering{w: c.out}
	root.SetOut(help)
	describeCompletion(root)
	root.SetErr(c.err)
	if at := slices.IndexFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") }); at >= 0 {
		c.args = args[at+1:]
	}
	err := unknownCommand(root, args)
	if err == nil {
		err = cmp.Or(execute(ctx, root), help.err)
	}
	if err != nil && err.Error() == context.Canceled.Error() {
		err = interrupted("interrupted")
	}
	var defect *parallel.Panic
	if errors.As(err, &defect) && c.verbose {
		fmt.Fprintf(c.err, "%s", defect.Stack)
	}
	code := exitCode(err)
	if code == exitDone || code == exitInfeasible || code == exitInterrupted {
		c.tellUntold()
	}
	if err != nil {
		fmt.Fprintf(c.err, "%s %s\n", paint(colourful(c.err), red, "placer:"), oneLine(err.Error()))
	}
	return code
}

// remembering is a writer that keeps its first error, which cobra forgets where it prints
// help.
type remembering struct {
	w   io.Writer
	err error
}

func (r *remembering) Write(b []byte) (int, error) {
	n, err := r.w.Write(b)
	r.err = cmp.Or(r.err, err)
	return n, err
}

// execute runs the command, with a panic as its error.
func execute(ctx context.Context, root *cobra.Command) (err error) {
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("a defect of this program, -v shows where: %w", parallel.Caught(x))
		}
	}()
	return root.ExecuteContext(ctx)
}

// oneLine joins the lines of a message: errors.Join puts each on its own.
func oneLine(s string) string { return strings.Join(strings.Split(strings.TrimSpace(s), "\n"), "; ") }

// usage makes err a mistake in the command line.
func usage(err error) error { return bench.ConfigError{Err: err} }

func usagef(format string, a ...any) error { return bench.ConfigErrorf(format, a...) }

// interrupted is the error of a command that was stopped.
func interrupted(message string) error { return bench.Interrupted{Message: message} }

func exitCode(err error) int {
	var config bench.ConfigError
	var infeasible *sim.Infeasible
	var outOfMemory *measure.OutOfMemory
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &config):
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &infeasible), errors.As(err, &outOfMemory), errors.Is(err, problem.ErrInfeasible), errors.Is(err, search.ErrNoPlacement), errors.Is(err, times.ErrNowhere):
		return exitInfeasible
	case errors.Is(err, gpu.ErrNoDevice), errors.Is(err, gpu.ErrNoBLAS), errors.Is(err, nvml.ErrNoLibrary), errors.Is(err, python.ErrNone):
		return exitNoDevice
	}
	return exitFailed
}

// note writes a remark to stderr.
func (c *console) note(format string, a ...any) { c.say("note: "+format, a...) }

// assumed is a note on the results that follow: it is written with the first thing that
// is, and never before an error that comes sooner.
func (c *console) assumed(format string, a ...any) {
	c.saying.Lock()
	defer c.saying.Unlock()
	c.untold = append(c.untold, fmt.Sprintf(format, a...))
}

// tellUntold writes what is untold.
func (c *console) tellUntold() {
	c.saying.Lock()
	defer c.saying.Unlock()
	c.writeUntold()
}

// say writes a line to stderr unless told to be quiet. Goroutines may call it at once.
func (c *console) say(format string, a ...any) {
	c.saying.Lock()
	defer c.saying.Unlock()
	c.writeUntold()
	c.writeLine(fmt.Sprintf(format, a...))
}

func (c *console) writeUntold() {
	for _, text := range c.untold {
		c.writeLine("note: " + text)
	}
	c.untold = nil
}

func (c *console) writeLine(text string) {
	if !c.quiet {
		fmt.Fprintf(c.err, "placer: %s\n", text)
	}
}

func (c *console) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "placer",
		Short: "Decide which device runs each op of a neural network",
		Long: "placer takes a neural network's computation graph and a machine, and finds which\n" +
			"device should run each op, in which order, and which ops are fused. Rules of thumb,\n" +
			"searches and learned policies are compared in one simulator, beside a proven lower\n" +
			"bound. Times are predicted, and no GPU is needed. Manual: docs/ of the source,\n" +
			"beginning with docs/tour.md.",
		Example: "  placer verdict --workload llama --gpu a100 --counts 1,2,4,8\n" +
			"  placer search --workload gnmt8 --gpus 8\n" +
			"  placer search --graph model.onnx --train adam --gpus 2 --budget 30s",
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.SetUsageFunc(printUsage)
	root.PersistentFlags().BoolVarP(&c.quiet, "quiet", "q", false, "print no progress")
	root.PersistentFlags().BoolVar(&c.wide, "wide", false, "print all columns of tables, however wide")
	root.PersistentFlags().BoolVarP(&c.verbose, "verbose", "v", false, "print more on stderr")
	grouped := func(title string, commands ...*cobra.Command) {
		root.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
		for _, sub := range commands {
			sub.GroupID = title
		}
		root.AddCommand(commands...)
	}
	grouped("Find a plan", c.searchCommand(), c.placeCommand(), c.finetuneCommand(), c.strategiesCommand(), c.servingCommand(), c.fitCommand(), c.replanCommand(), c.pipelineCommand())
	grouped("Ask about a model or a plan", c.verdictCommand(), c.simulateCommand(), c.explainCommand(), c.checkCommand(), c.diffCommand(), c.compareCommand(), c.reportCommand())
	grouped("Read graphs and machines, write plans", c.importCommand(), c.exportCommand(), c.workloadsCommand(), c.machinesCommand())
	grouped("Measure, train policies, use other hosts", c.measureCommand(), c.benchCommand(), c.pretrainCommand(), c.workerCommand())
	root.AddCommand(c.versionCommand())
	takeNoArguments(root)
	completeFlags(root, flagValues())
	return root
}

// takeNoArguments makes an argument an error of every command below of that does not say what
// it does with one.
func takeNoArguments(of *cobra.Command) {
	for _, sub := range of.Commands() {
		if sub.Args == nil {
			sub.Args = noArguments
		}
		takeNoArguments(sub)
	}
}

// unknownCommand reports a first word that names no command: cobra would rather
// complain of the flags behind it.
func unknownCommand(root *cobra.Command, args []string) error {
	for _, a := range args {
		if strings.HasPrefix(a, "-") {
			continue // all flags before a command are switches
		}
		if a == "help" {
			continue // what is asked about is a command too
		}
		if strings.HasPrefix(a, "__complete") || a == "completion" {
			return nil
		}
		for _, sub := range root.Commands() {
			if sub.Name() == a {
				return nil
			}
		}
		return notACommand(root, a)
	}
	return nil
}

// notACommand says that of has no command of that name, and which ones it may be a slip
// for.
func notACommand(of *cobra.Command, name string) error {
	path := strings.TrimPrefix(of.CommandPath()+" "+name, "placer ")
	var names []string
	for _, sub := range of.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	if near := spell.Near(name, names); len(near) > 0 {
		return usagef("unknown command %q, did you mean %s?", path, strings.Join(near, " or "))
	}
	return usagef("unknown command %q; %s --help lists them", path, of.CommandPath())
}
