package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"placer/baselines/rules"
	"placer/baselines/search/anneal"
	"placer/internal/fsx"
	"placer/internal/tfevents"
	"placer/placer/corpus"
	"placer/placer/policy/sequential"
	"placer/plan"
)

// Files of a pretraining run's folder.
const (
	checkpointFile = "checkpoint.safetensors"
	policyFile     = "policy.safetensors"
)

// pretrainFlags are the flags of the pretrain command.
type pretrainFlags struct {
	config  sequential.PretrainConfig
	encoder int      // width; 0 for none
	without []string // parts of the encoder
	guides  string
	hours   float64
	teacher int
	out     string
	cache   string
	corpus  string
	most    int
	every   int
}

func (c *console) pretrainCommand() *cobra.Command {
	f := pretrainFlags{config: sequential.DefaultPretrain()}
	p := &f.config
	cmd := &cobra.Command{
		Use:   "pretrain",
		Short: "Train a policy on many graphs, for use on others",
		Long: "pretrain draws graphs of the model families, machines and device counts. It first\n" +
			"imitates the plans of a search and then improves by PPO on all graphs together. The\n" +
			"folder holds a checkpoint, the policy and TensorBoard's event files. The same command\n" +
			"continues a run that was stopped or killed; with a budget in steps alone it ends with\n" +
			"the same policy.",
		Example: "  placer pretrain --hold-out gnmt --out runs/without-gnmt --hours 1\n  placer pretrain --workloads rnnlm,gnmt,trfxl --steps 2000 --out runs/small",
		RunE: func(cmd *cobra.Command, _ []string) error {
			problems, err := f.check()
			if err != nil {
				return err
			}
			return c.pretrain(cmd.Context(), &f, problems)
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&p.Families, "workloads", nil, "families to train on, separated by commas; all without it")
	fl.StringSliceVar(&p.HeldOut, "hold-out", nil, "families that are held out, with those related to them")
	fl.Float64Var(&f.hours, "hours", 0, "time to train, over all resumptions; 0 trains for --steps")
	fl.IntVar(&p.Imitation, "imitation", p.Imitation, "steps that imitate a search's plans")
	fl.IntVar(&p.Steps, "steps", p.Steps, "steps of PPO")
	fl.IntVar(&p.TaskSteps, "task-steps", p.TaskSteps, "steps of the policy gradient on schedule and fusion, which an encoder decides")
	fl.IntVar(&p.Samples, "samples", p.Samples, "placements of a step of PPO")
	fl.IntVar(&p.Alike, "self-label", p.Alike, "rollouts by each prior in a step of self-labelling, which imitates the best of them in the place of PPO; 0 is PPO")
	fl.IntVar(&p.Pool, "pool", p.Pool, "graphs of a family in use at a time")
	fl.IntVar(&p.MostRows, "most-rows", p.MostRows, "largest graph, in decisions times devices")
	fl.IntVar(&p.Policy.Hidden, "hidden", p.Policy.Hidden, "width of the network's layers")
	fl.IntVar(&f.encoder, "encoder", p.Policy.Encoder.GraphSAGE.Width, "width of GraphSAGE and the attention that embed the units; 0 leaves them out")
	fl.StringSliceVar(&f.without, "without", nil, "parts of the encoder to leave out, separated by commas: "+strings.Join(sequential.Parts(), ", "))
	fl.StringVar(&f.guides, "guides", "all", "rules of thumb among the inputs, and as what scores begin with: all or none")
	fl.IntVar(&p.Judged, "judged", p.Judged, "graphs of each family on which all proposals are tried at the end; 0 leaves their order to chance")
	fl.Float64Var(&p.Rate, "rate", p.Rate, "learning rate of PPO")
	fl.Float64Var(&p.Entropy, "entropy", p.Entropy, "factor of the entropy bonus")
	fl.Float64Var(&p.Prior, "prior", p.Prior, "weight of the divergence from the heuristic prior")
	fl.Uint64Var(&p.Seed, "seed", p.Seed, "seed of every random choice")
	fl.IntVar(&f.teacher, "teacher", 1000, "evaluations of the search that is imitated, per graph")
	fl.IntVar(&f.every, "every", 100, "steps between checkpoints")
	fl.StringVar(&f.out, "out", "", "folder of the run; an existing one is continued")
	fl.StringVar(&f.cache, "cache", "", "folder that keeps the imitated plans between runs")
	fl.StringVar(&f.corpus, "corpus", "", "folder of a corpus, whose problems and plans take the place of drawn ones")
	fl.IntVar(&f.most, "problems", 0, "the corpus's first problems that are trained on, of families not held out; 0 for all")
	cmd.AddCommand(c.corpusCommand(), c.movesCommand())
	return cmd
}

// check completes the configuration, reports the first fault, and returns the problems of the
// corpus.
func (f *pretrainFlags) check() ([]corpus.Problem, error) {
	p := &f.config
	if f.out == "" {
		return nil, usagef("name the run's folder by --out")
	}
	if !(f.hours >= 0) || math.IsInf(f.hours, 1) || f.teacher < 1 || f.every < 1 || f.most < 0 || f.encoder < 0 {
		return nil, usagef("--hours %g, --problems %d and --encoder %d must be finite and not negative, --teacher %d and --every %d at least 1", f.hours, f.most, f.encoder, f.teacher, f.every)
	}
	if p.Policy.Encoder = nil; f.encoder > 0 {
		p.Policy.Encoder = sequential.DefaultEncoder(f.encoder)
	}
	var err error
	if p.Policy, err = p.Policy.Without(f.without); err != nil {
		return nil, usage(err)
	}
	if f.guides != "all" && f.guides != "none" {
		return nil, usagef("--guides %s, want all or none", f.guides)
	}
	p.Policy.Unguided = f.guides == "none"
	if f.corpus == "" && f.most > 0 {
		return nil, usagef("--problems goes with --corpus")
	}
	problems, err := f.problems()
	if err != nil {
		return nil, err
	}
	p.Corpus = corpus.Fingerprint(problems)
	if err := p.Validate(); err != nil {
		return nil, usage(err)
	}
	return problems, nil
}

// problems returns those of the corpus, none where there is no corpus.
func (f *pretrainFlags) problems() ([]corpus.Problem, error) {
	if f.corpus == "" {
		return nil, nil
	}
	all, err := corpus.Read(f.corpus)
	if err != nil {
		return nil, err
	}
	return all.Select(f.config.Families, f.config.HeldOut, f.most)
}

func (c *console) pretrain(ctx context.Context, f *pretrainFlags, problems []corpus.Problem) error {
	folder, err := fsx.OpenFolder(f.out)
	if err != nil {
		return err
	}
	defer folder.Close()
	from, err := readIfThere(filepath.Join(f.out, checkpointFile), sequential.ReadCheckpoint)
	if err != nil {
		return err
	}
	before, first := 0.0, 0
	if from != nil {
		before, first = from.Seconds, from.Step
		c.say("going on from step %d", from.Step)
	}
	board, err := tfevents.Create(f.out, "pretrain", first, c.clock)
	if err != nil {
		return err
	}
	defer board.Close()
	show := c.newProgress(plan.Budget{})
	defer show.close()
	watch := watcher{c: c, show: show, board: board, total: f.config.Total()}
	host := sequential.Host{
		Expert: rules.Expert(), Teacher: anneal.Placer{Workers: 1}, TeacherBudget: plan.Budget{Evaluations: f.teacher}, Problems: problems,
		Report: watch.observe, Every: f.every,
		Save: func(k *sequential.Checkpoint) error {
			k.Seconds = before + c.clock()
			return fsx.WriteFile(filepath.Join(f.out, checkpointFile), k.Write)
		},
	}
	if f.hours > 0 {
		host.Share = func() float64 { return (before + c.clock()) / (f.hours * 3600) }
	}
	if f.cache != "" {
		if err := os.MkdirAll(f.cache, 0o755); err != nil {
			return err
		}
		host.Recall, host.Remember = recall(f.cache), remember(f.cache)
	}
	policy, err := sequential.Pretrain(ctx, f.config, from, host)
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return interrupted("interrupted; run the same command to continue")
		}
		return err
	}
	path := filepath.Join(f.out, policyFile)
	if err := fsx.WriteFile(path, policy.Write); err != nil {
		return err
	}
	return c.print(false, cardOf(path, policy))
}

// readIfThere returns what read makes of the file at path, nil where there is none.
func readIfThere[T any](path string, read func(data []byte, name string) (*T, error)) (*T, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return read(data, path)
}

// watcher shows and records the steps of a run.
type watcher struct {
	c     *console
	show  *progress
	board *tfevents.File
	total int
	last  float64
}

func (w *watcher) observe(p sequential.Progress) error {
	var values []tfevents.Value
	text := ""
	of := strings.ReplaceAll(strings.ToLower(string(p.How)), " ", "_") + "/"
	if p.How == sequential.Imitation {
		values = []tfevents.Value{tfevents.Scalar(of+"loss", p.Loss), tfevents.Scalar(of+"accuracy", p.Accuracy), tfevents.Scalar(of+"accuracy_constant_per_stretch", p.Constant)}
		text = fmt.Sprintf("%s: loss %.3f, accuracy %.3f (%.3f by one device for each stretch)", p.How, p.Loss, p.Accuracy, p.Constant)
	} else {
		values = []tfevents.Value{tfevents.Scalar(of+"mean_of_expert", p.Mean), tfevents.Scalar(of+"best_of_expert", p.Best), tfevents.Scalar(of+"entropy", p.Entropy)}
		text = fmt.Sprintf("%s on %s: mean %.3f and best %.3f of the expert's time, entropy %.3f", p.How, p.Case.Workload, p.Mean, p.Best, p.Entropy)
	}
	if p.How == sequential.PPO {
		values = append(values, tfevents.Scalar(of+"clipped", p.Clipped))
	}
	if now := w.c.clock(); now-w.last >= 2 || p.Step == 0 || p.Step+1 == w.total {
		w.last = now
		w.show.line("%7.1f s  step %d of %d, %s", now, p.Step+1, w.total, text)
	}
	return w.board.Write(int64(p.Step), values...)
}

// cached is the path of what is kept under key.
func cached(folder, key string) string {
	h := fnv.New64a()
	h.Write([]byte(key))
	return filepath.Join(folder, fmt.Sprintf("%016x.json", h.Sum64()))
}

// kept is a file of the cache.
type kept struct {
	Key       string  `json:"key"`
	Decisions []int32 `json:"decisions"`
}

func recall(folder string) func(string) []int32 {
	return func(key string) []int32 {
		data, err := os.ReadFile(cached(folder, key))
		if err != nil {
			return nil
		}
		var k kept
		if json.Unmarshal(data, &k) != nil || k.Key != key {
			return nil // of another version, or cut short: it is made anew
		}
		return k.Decisions
	}
}

func remember(folder string) func(string, []int32) error {
	return func(key string, decisions []int32) error {
		data, err := json.Marshal(kept{key, decisions})
		if err != nil {
			return err
		}
		return fsx.WriteFile(cached(folder, key), writes(data))
	}
}

// writes returns a function that writes data.
func writes(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}
