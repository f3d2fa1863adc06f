package sequential

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"placer/graphsage"
	"placer/internal/faults"
	"placer/nn"
	"placer/transformerxl"
)

// EncoderConfig describes GO's network as the policy has it: GraphSAGE over the units,
// segment-recurrent attention over their sequence, and superposition by the features of
// one more layer.
type EncoderConfig struct {
	GraphSAGE     graphsage.Config     `json:"graphsage"`
	TransformerXL transformerxl.Config `json:"transformerxl"`
}

// DefaultEncoder returns an encoder of width d. Its parts are those of GDP's tables 3
// and 4, narrower, because the decoder looks at the state of the partial placement
// closely and the encoder has to say only what the graph says.
func DefaultEncoder(d int) *EncoderConfig {
	sage := graphsage.Default(numUnitFeatures)
	sage.Width, sage.Layers = d, 3
	xl := transformerxl.Default(embeddingWidth)
	xl.Width, xl.Layers, xl.Heads, xl.HeadWidth, xl.Inner = d, 2, 4, max(1, d/4), 2*d
	xl.Segment, xl.Memory = 128, 128
	xl.ScheduleLevels, xl.FusionLevels = scheduleLevels, fusionLevels
	return &EncoderConfig{sage, xl}
}

// Validate reports every fault.
func (c EncoderConfig) Validate() error {
	all := faults.List{c.GraphSAGE.Validate(), c.TransformerXL.Validate()}
	all.If(c.GraphSAGE.Features != numUnitFeatures, "sequential: an encoder of %d features, want %d", c.GraphSAGE.Features, numUnitFeatures)
	all.If(c.GraphSAGE.Width != c.TransformerXL.Width, "sequential: GraphSAGE's width %d and the attention's %d differ", c.GraphSAGE.Width, c.TransformerXL.Width)
	all.If(c.TransformerXL.Choices != embeddingWidth, "sequential: an embedding of %d columns, want %d", c.TransformerXL.Choices, embeddingWidth)
	s, f := c.TransformerXL.ScheduleLevels, c.TransformerXL.FusionLevels
	all.If(s != 0 && s != scheduleLevels || f != 0 && f != fusionLevels || c.TransformerXL.FusionKinds > 1, "sequential: %d levels of schedule and %d of fusion, want 0 or %d and %d, of one kind", s, f, scheduleLevels, fusionLevels)
	return errors.Join(all...)
}

// The columns E of a unit's embedding: a query and a key, of which the products say
// what a unit has to do with those on a device, and context.
const (
	affinityWidth  = 16 // A, of queries and keys
	contextWidth   = 16
	embeddingWidth = 2*affinityWidth + contextWidth
)

// encoder embeds the units of an instance. It is safe for concurrent use, except while
// the weights change.
type encoder struct {
	config   EncoderConfig
	backend  *nn.Backend
	sage     *graphsage.Encoder
	decision *transformerxl.Network

	mu     sync.Mutex
	graphs nn.Cache[*encoderGraph]
	known  map[*instance][]nn.Mat // of the first tasks, or of all
}

// mostCompiled bounds the compiled graphs and the embeddings that are kept.
const mostCompiled = 24

// encoderGraph is the encoder for U units. Its rows are in the order of decisions,
// which is what attention over a sequence follows.
type encoderGraph struct {
	*nn.Graph
	units    int
	tasks    int // the first of Tasks that it computes
	x        *nn.Node
	lists    *graphsage.Neighbours
	segments []transformerxl.Segment
}

func newEncoder(c EncoderConfig, ps *nn.Params, random *rand.Rand, b *nn.Backend) *encoder {
	return &encoder{config: c, backend: b, sage: graphsage.New(c.GraphSAGE, ps, random), decision: transformerxl.New(c.TransformerXL, ps, random), graphs: nn.Cache[*encoderGraph]{Most: mostCompiled}, known: map[*instance][]nn.Mat{}}
}

// embed returns the embedding of the units of s, [U,E]. It must not be changed.
func (e *encoder) embed(s *instance) nn.Mat { return e.outputs(s, 1)[0] }

// tasks returns the logits of the units of s.
func (e *encoder) tasks(s *instance) taskLogits {
	all := e.config.TransformerXL.Tasks()
	x, out := taskLogits{nn.NewMat(len(s.turn), scheduleLevels), nn.NewMat(len(s.turn), fusionLevels)}, e.outputs(s, len(all))
	for i, task := range all {
		switch task.Name {
		case transformerxl.Scheduling:
			copy(x.schedule.V, out[i].V)
		case transformerxl.Fusion:
			copy(x.fusion.V, out[i].V)
		}
	}
	x.addDefaults()
	return x
}

// outputs returns what the encoder says of each unit for at least the first tasks, placement
// before the others, [U,columns] each.
func (e *encoder) outputs(s *instance, tasks int) []nn.Mat {
	e.mu.Lock()
	defer e.mu.Unlock()
	if m, ok := e.known[s]; ok && len(m) >= tasks {
		return m
	}
	c := e.run(s, tasks, nil)
	all := make([]nn.Mat, tasks)
	for i := range all {
		out := c.Output(i)
		all[i] = nn.NewMat(out.N, out.D)
		for t, u := range s.turn {
			copy(all[i].Row(int(u)), out.Row(t))
		}
	}
	if len(e.known) >= mostCompiled {
		clear(e.known)
	}
	e.known[s] = all
	return all
}

// backward adds the gradient of the encoder's weights for the gradients of what it says
// for tasks, [U,columns] each.
func (e *encoder) backward(s *instance, gradients map[string]nn.Mat) {
	e.mu.Lock()
	defer e.mu.Unlock()
	o := &rowGradients{order: s.turn}
	for _, task := range e.config.TransformerXL.Tasks() {
		o.gradients = append(o.gradients, gradients[task.Name])
	}
	e.run(s, len(o.gradients), o)
}

// changed forgets the embeddings of earlier weights.
func (e *encoder) changed() { clear(e.known) }

// run runs the encoder on s for the first tasks, backward too with an objective.
func (e *encoder) run(s *instance, tasks int, o nn.Objective) *encoderGraph {
	c := e.compiled(len(s.turn), tasks, o != nil)
	c.lists = s.nearest()
	c.segments = transformerxl.Segments([]int32{0, int32(len(s.turn))}, e.config.TransformerXL.Segment, e.config.TransformerXL.Memory)
	x := nn.NewMat(len(s.turn), numUnitFeatures)
	for t, u := range s.turn {
		copy(x.Row(t), s.features[int(u)*numUnitFeatures:(int(u)+1)*numUnitFeatures])
	}
	c.SetInput(c.x, x)
	if _, err := c.Run(o); err != nil {
		panic(fmt.Sprintf("sequential: encoder: %v", err)) // shapes are fixed when it is compiled
	}
	return c
}

// compiled returns the encoder for n units and at least the first tasks.
func (e *encoder) compiled(n, tasks int, train bool) *encoderGraph {
	c, err := e.graphs.Get(func(c *encoderGraph) bool { return c.units == n && c.tasks >= tasks }, train, func() (*encoderGraph, error) {
		c := &encoderGraph{units: n, tasks: tasks, Graph: nn.NewGraph(e.backend)}
		c.x = c.Input("units", n, numUnitFeatures)
		h := e.sage.Apply(c.Graph, c.x, &c.lists)
		out, _ := e.decision.Apply(c.Graph, h, h, &c.segments, &c.segments)
		return c, c.Compile(train, out[:tasks]...)
	})
	if err != nil {
		panic(fmt.Sprintf("sequential: encoder: %v", err))
	}
	return c
}

// rowGradients is an objective whose gradients with respect to the outputs are given, for
// rows that the outputs have in another order. Those of an output may be missing.
type rowGradients struct {
	order     []int32 // [U]
	gradients []nn.Mat
}

// Loss is as nn.Objective says; the loss itself is not known here.
func (o *rowGradients) Loss(_ *nn.Context, _, gradients []nn.Mat) float64 {
	for i, g := range o.gradients {
		if g.V == nil {
			continue
		}
		for t, u := range o.order {
			copy(gradients[i].Row(t), g.Row(int(u)))
		}
	}
	return 0
}
