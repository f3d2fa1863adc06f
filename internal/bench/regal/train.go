package regal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"sync"

	"placer/baselines/regal/gnn"
	"placer/baselines/regal/rivals"
	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
	"placer/internal/bench"
	"placer/internal/fsx"
	"placer/internal/tfevents"
	"placer/nn"
	"placer/nn/safetensors"
)

// Training says how REGAL's policy is trained.
type Training struct {
	Folder    string
	Agent     string // synthetic, time, memory or deep
	Likeliest bool   // the policy proposes its likeliest actions instead of drawing them
	Steps     int    // those of imitation and of earlier runs included
	Graphs    int    // synthetic ones
	Every     int    // steps between checkpoints
	MaxOps    int    // of a synthetic graph
	gnn.Training
}

// DefaultTraining trains for a thousand steps.
func DefaultTraining() Training {
	return Training{Agent: "synthetic", Steps: 1000, Graphs: 200, Every: 50, MaxOps: synth.Default().MaxOps, Training: gnn.Short()}
}

// policy returns the agent asked for, with random weights.
func (t *Training) policy(devices int, seed uint64) (*gnn.Policy, error) {
	config, err := gnn.Agent(t.Agent)
	if err != nil {
		return nil, bench.ConfigErrorf("--regal-agent: %w", err)
	}
	config.Actions.Devices, config.Likeliest = devices, t.Likeliest
	backend, err := nn.NewBackend(nn.Default())
	if err != nil {
		return nil, err
	}
	return gnn.New(config, backend, rand.New(rand.NewPCG(seed, 1)))
}

// The files of a training, beside TensorBoard's.
const (
	checkpointFile = "checkpoint.safetensors" // with the optimiser's state
	weightsFile    = "weights.safetensors"
)

// Train trains on the task's graphs until the steps are made or ctx ends, and goes
// on with what is in the folder.
func Train(ctx context.Context, c Config, t Training, host bench.Host) error {
	if err := c.validate(); err != nil {
		return err
	}
	m, err := c.machine()
	if err != nil {
		return err
	}
	t.Workers = c.Workers
	if c.Task == rivals.Memory {
		t.Objective = sched.PeakMemory
	}
	if err := t.check(&c); err != nil {
		return err
	}
	policy, err := t.policy(c.Devices, c.Seed)
	if err != nil {
		return err
	}
	graphs, graph, err := c.trainingGraphs(ctx, &t, m)
	if err != nil {
		return err
	}
	folder, err := fsx.OpenFolder(t.Folder)
	if err != nil {
		return err
	}
	defer folder.Close()
	trainer := gnn.NewTrainer(policy, t.Training, graphs, graph, c.Seed)
	checkpoint := filepath.Join(t.Folder, checkpointFile)
	if err := restore(trainer, checkpoint); err != nil {
		return err
	}
	board, err := tfevents.Create(t.Folder, "regal", trainer.Steps(), host.Clock)
	if err != nil {
		return err
	}
	defer board.Close()
	save := func() error {
		return errors.Join(writeTensors(checkpoint, trainer.Checkpoint()), writeTensors(filepath.Join(t.Folder, weightsFile), trainer.Weights()))
	}
	for trainer.Steps() < t.Steps {
		s, err := trainer.Step(ctx)
		if ctx.Err() != nil {
			return errors.Join(save(), ctx.Err())
		}
		if err != nil {
			return err
		}
		if err := board.Write(int64(s.Step), tfevents.Scalar("train/reward", s.Reward), tfevents.Scalar("train/loss", s.Loss),
			tfevents.Scalar("train/baseline", s.Baseline), tfevents.Scalar("train/gradient norm", s.GradientNorm)); err != nil {
			return err
		}
		host.Log("step %d: loss %.4f, reward %.4f, baseline %.4f", s.Step, s.Loss, s.Reward, s.Baseline)
		if s.Step%t.Every == 0 || s.Step == t.Steps {
			if err := save(); err != nil {
				return err
			}
		}
	}
	return nil
}

// check reports a setting of t, which trains for what c compares, that nothing can be done by.
func (t *Training) check(c *Config) error {
	switch {
	case t.Imitate > 0 && !c.synthetic():
		return bench.ConfigErrorf("--train-imitate is for --task synthetic: the rule is one for run times without a memory limit")
	case t.Graphs < 1 || t.Steps < 1 || t.Every < 1:
		return bench.ConfigErrorf("--train-steps %d --train-graphs %d --train-save %d: want at least 1", t.Steps, t.Graphs, t.Every)
	}
	if err := t.Validate(); err != nil {
		return bench.ConfigError{Err: err}
	}
	return nil
}

// trainingGraphs returns how many training graphs there are and what gives graph
// k: synthetic ones, each made at its first use, or those of the other tasks with
// their copies.
func (c *Config) trainingGraphs(ctx context.Context, t *Training, m sched.Machine) (int, func(k int) (*sched.Problem, error), error) {
	if !c.synthetic() {
		n, graph, err := c.graphs(ctx, m)
		return n, func(k int) (*sched.Problem, error) { return graph(ctx, k) }, err
	}
	config := synth.Default()
	config.Machine, config.MaxOps = m, t.MaxOps
	if err := config.Validate(); err != nil {
		return 0, nil, bench.ConfigError{Err: err}
	}
	all := make([]func() (*sched.Problem, error), t.Graphs)
	for k := range all {
		all[k] = sync.OnceValues(func() (*sched.Problem, error) {
			p, _, err := synth.Filtered(ctx, config, synth.DefaultFilter(), c.Seed, uint64(k))
			return p, err
		})
	}
	return t.Graphs, func(k int) (*sched.Problem, error) { return all[k]() }, nil
}

// restore continues from the checkpoint in file, if there is one.
func restore(t *gnn.Trainer, file string) error {
	f, err := readTensors(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := t.Restore(f); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

func writeTensors(file string, f *safetensors.File) error {
	return fsx.WriteFile(file, func(w io.Writer) error { return safetensors.Write(w, f) })
}
