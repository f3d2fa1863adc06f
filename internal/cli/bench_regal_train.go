package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/pflag"

	"placer/baselines/regal/gnn"
	"placer/baselines/regal/rivals"
	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
	"placer/internal/fsx"
	"placer/internal/tfevents"
	"placer/nn"
	"placer/nn/safetensors"
)

// regalTraining are the flags of bench regal that train REGAL's policy.
type regalTraining struct {
	folder  string
	agent   string
	steps   int
	graphs  int
	every   int
	most    int // ops
	likely  bool
	numbers gnn.Training
}

func (t *regalTraining) add(fl *pflag.FlagSet) {
	t.numbers = gnn.Short()
	fl.StringVar(&t.folder, "train-regal", "", "train REGAL's policy on the task's graphs into this folder, or go on with what is there, instead of comparing")
	fl.StringVar(&t.agent, "regal-agent", "synthetic", "network to train: synthetic, time or memory, as in the paper, or deep")
	fl.BoolVar(&t.likely, "regal-likeliest", false, "let the trained policy propose its likeliest actions instead of drawing them")
	fl.IntVar(&t.steps, "train-steps", 1000, "steps of the training, those of imitation and of a training gone on with included")
	fl.IntVar(&t.graphs, "train-graphs", 200, "synthetic training graphs")
	fl.IntVar(&t.every, "train-save", 50, "steps between checkpoints")
	fl.IntVar(&t.most, "train-max-ops", synth.Default().MaxOps, "ops of the largest synthetic training graph; small ones teach sooner")
	fl.IntVar(&t.numbers.Keep, "train-keep", t.numbers.Keep, "visits of a training graph in a row that share a reading of its features")
	fl.IntVar(&t.numbers.Imitate, "train-imitate", 0, "first steps, which imitate a rule of ours; 0 for REINFORCE alone, as in the paper")
	fl.IntVar(&t.numbers.Batch, "train-batch", t.numbers.Batch, "graphs of a step")
	fl.IntVar(&t.numbers.Samples, "train-samples", t.numbers.Samples, "samples of each graph")
	fl.IntVar(&t.numbers.Evaluations, "train-evaluations", t.numbers.Evaluations, "evaluations of a search that rewards a sample")
	fl.Float64Var(&t.numbers.LearningRate, "train-rate", t.numbers.LearningRate, "learning rate of REINFORCE")
}

// policy returns the agent asked for, with random weights.
func (t *regalTraining) policy(devices int, seed uint64) (*gnn.Policy, error) {
	config, err := gnn.Agent(t.agent)
	if err != nil {
		return nil, usagef("--regal-agent: %v", err)
	}
	config.Actions.Devices, config.Likeliest = devices, t.likely
	backend, err := nn.NewBackend(nn.Default())
	if err != nil {
		return nil, err
	}
	return gnn.New(config, backend, rand.New(rand.NewPCG(seed, 1)))
}

// The files of a training, beside TensorBoard's.
const (
	regalCheckpoint = "checkpoint.safetensors" // with the optimiser's state
	regalWeights    = "weights.safetensors"
)

// trainRegal trains until the steps are made or ctx ends.
func (c *console) trainRegal(ctx context.Context, f *regalFlags, m sched.Machine) error {
	t := &f.training
	t.numbers.Workers = f.workers
	if f.task == string(rivals.Memory) {
		t.numbers.Objective = sched.PeakMemory
	}
	if t.numbers.Imitate > 0 && f.task != string(rivals.Synthetic) {
		return usagef("--train-imitate is for --task synthetic: the rule is one for run times without a memory limit")
	}
	if err := t.numbers.Validate(); err != nil || t.graphs < 1 || t.steps < 1 || t.every < 1 {
		return usagef("training of %d steps on %d graphs, saved every %d: %v", t.steps, t.graphs, t.every, err)
	}
	policy, err := t.policy(f.devices, f.seed)
	if err != nil {
		return err
	}
	graphs, graph, err := c.trainingGraphs(ctx, f, m)
	if err != nil {
		return err
	}
	trainer := gnn.NewTrainer(policy, t.numbers, graphs, graph, f.seed)
	if err := os.MkdirAll(t.folder, 0o755); err != nil {
		return err
	}
	if err := resumeRegal(trainer, filepath.Join(t.folder, regalCheckpoint)); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	events, err := os.Create(filepath.Join(t.folder, tfevents.FileName(c.now().Unix(), host, os.Getpid())))
	if err != nil {
		return err
	}
	defer events.Close()
	log, err := tfevents.NewWriter(events, func() float64 { return float64(c.now().UnixNano()) / 1e9 })
	if err != nil {
		return err
	}
	save := func() error {
		return errors.Join(writeTensors(filepath.Join(t.folder, regalCheckpoint), trainer.Checkpoint()),
			writeTensors(filepath.Join(t.folder, regalWeights), trainer.Weights()))
	}
	for trainer.Steps() < t.steps {
		s, err := trainer.Step(ctx)
		if ctx.Err() != nil {
			return errors.Join(save(), ctx.Err())
		}
		if err != nil {
			return err
		}
		if err := log.Write(int64(s.Step), tfevents.Scalar("train/reward", s.Reward), tfevents.Scalar("train/loss", s.Loss),
			tfevents.Scalar("train/baseline", s.Baseline), tfevents.Scalar("train/gradient norm", s.GradientNorm)); err != nil {
			return err
		}
		if !c.quiet {
			fmt.Fprintf(c.err, "%8.1f s  step %d: loss %.4f, reward %.4f, baseline %.4f\n", c.clock(), s.Step, s.Loss, s.Reward, s.Baseline)
		}
		if s.Step%t.every == 0 || s.Step == t.steps {
			if err := save(); err != nil {
				return err
			}
		}
	}
	return nil
}

// trainingGraphs returns how many training graphs there are and what gives
// graph k: synthetic ones, or for other tasks those of --graph and --workload with
// their copies.
func (c *console) trainingGraphs(ctx context.Context, f *regalFlags, m sched.Machine) (int, func(k int) (*sched.Problem, error), error) {
	if f.task != string(rivals.Synthetic) {
		n, graph, err := c.regalGraphs(ctx, f, m)
		return n, func(k int) (*sched.Problem, error) { return graph(ctx, k) }, err
	}
	config := synth.Default()
	config.Machine, config.MaxOps = m, f.training.most
	if err := config.Validate(); err != nil {
		return 0, nil, usageError{err}
	}
	return f.training.graphs, filteredGraphs(ctx, config, f.seed, f.training.graphs), nil
}

// filteredGraphs returns what gives training graph k, made at its first use.
func filteredGraphs(ctx context.Context, c synth.Config, seed uint64, n int) func(k int) (*sched.Problem, error) {
	all := make([]func() (*sched.Problem, error), n)
	for k := range all {
		all[k] = sync.OnceValues(func() (*sched.Problem, error) {
			p, _, err := synth.Filtered(ctx, c, synth.DefaultFilter(), seed, uint64(k))
			return p, err
		})
	}
	return func(k int) (*sched.Problem, error) { return all[k]() }
}

// resumeRegal continues from the checkpoint in file, if there is one.
func resumeRegal(t *gnn.Trainer, file string) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	f, err := safetensors.Read(data)
	if err == nil {
		err = t.Restore(f)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

func writeTensors(file string, f *safetensors.File) error {
	return fsx.WriteFile(file, func(w io.Writer) error { return safetensors.Write(w, f) })
}
