package transformerxl

import (
	"math/rand/v2"
	"strings"
	"testing"

	"placer/nn"
	"placer/nn/nntest"
)

// taskSets are subsets of the tasks.
func taskSets() map[string]func(c *Config) {
	return map[string]func(c *Config){
		"place":      func(c *Config) {},
		"all":        func(c *Config) { c.ScheduleLevels, c.FusionLevels = 4, 3 },
		"kinds":      func(c *Config) { c.ScheduleLevels, c.FusionLevels, c.FusionKinds = 4, 2, 3 },
		"apart":      func(c *Config) { c.ScheduleLevels, c.FusionLevels, c.TasksApart = 4, 3, true },
		"place,fuse": func(c *Config) { c.FusionLevels = 5 },
		"schedule":   func(c *Config) { c.Choices, c.ScheduleLevels = 0, 4 },
		"sched,fuse": func(c *Config) { c.Choices, c.ScheduleLevels, c.FusionLevels = 0, 2, 6 },
	}
}

// TestRecurrentAttentionOverTasks: GO, section 4.4: H_t = LN(concat(A_{t-1},
// H_{t-1})), A_t = FC(MHA(H_t)), with one set of attention parameters.
func TestRecurrentAttentionOverTasks(t *testing.T) {
	for name, change := range taskSets() {
		for _, variant := range []string{"residual", "paper", "no attention"} {
			t.Run(name+"/"+variant, func(t *testing.T) {
				c := smallConfig()
				c.HeadResidual, c.Attention = variant == "residual", variant != "no attention"
				change(&c)
				s := newSetup(c)
				const n = 21
				x := embedding(n, c.Width)
				g := nn.NewGraph(nntest.Backends(t)[0])
				in := g.Input("h", n, c.Width)
				segments := Segments([]int32{0, n}, c.Segment, c.Memory)
				logits, states := s.net.Apply(g, in, in, &segments, &segments)
				if err := g.Compile(false, append(logits, states)...); err != nil {
					t.Fatal(err)
				}
				g.SetInput(in, x)
				if _, err := g.Run(nil); err != nil {
					t.Fatal(err)
				}
				var last []float64
				for _, v := range g.Output(len(logits)).V {
					last = append(last, float64(v))
				}
				for i, want := range newReference(s, n).tasks(last) {
					task := c.Tasks()[i]
					if d := g.Output(i).D; d != task.Columns() {
						t.Errorf("%s has %d logits, want %d", task.Name, d, task.Columns())
					}
					equal(t, task.Name, g.Output(i).V, want)
				}
				shared := 0
				for _, p := range s.ps.All() {
					if strings.HasSuffix(p.Name, ".attention.qkv.w") && !strings.HasPrefix(p.Name, "layer") && !strings.HasPrefix(p.Name, "modulation") {
						shared++
					}
				}
				if want := map[bool]int{true: 1, false: 0}[c.Attention]; shared != want {
					t.Errorf("%d attentions over tasks, want %d", shared, want)
				}
			})
		}
	}
}

// own returns the parameters of the heads and of their attention, in order.
func (n *Network) own() (all []**nn.Param) {
	affine := func(a *nn.Affine) { all = append(all, &a.W[0], &a.B) }
	if n.attend != nil {
		affine(&n.attend.in)
		affine(&n.attend.out)
	}
	for i := range n.heads {
		h := &n.heads[i]
		all = append(all, &h.in.Gain, &h.in.Bias)
		if h.project != nil {
			affine(h.project)
		}
		if h.mid != nil {
			all = append(all, &h.mid.Gain, &h.mid.Bias)
		}
		affine(&h.fc1)
		affine(&h.fc2)
	}
	return all
}

// TestTaskGradients compares the gradients of all heads' logits with finite
// differences of the equations, down to the states and the shared attention.
func TestTaskGradients(t *testing.T) {
	const n = 11
	for name, change := range taskSets() {
		for _, residual := range []bool{true, false} {
			c := smallConfig()
			c.Width, c.Layers, c.Memory, c.HeadResidual = 6, 1, 0, residual
			change(&c)
			build := func() *Network { return New(c, nn.NewParams(), rand.New(rand.NewPCG(1, 2))) }
			segments := Segments([]int32{0, n}, c.Segment, 0)
			shapes := [][]int{{n, c.Width}}
			names := map[string]int{}
			for i, p := range build().own() {
				shapes = append(shapes, (*p).Shape)
				names[(*p).Name] = i + 1
			}
			check := nntest.Case{Name: name, Shapes: shapes,
				Build: func(g *nn.Graph, p []*nn.Param) *nn.Node {
					net := build()
					for i, q := range net.own() {
						*q = p[i+1]
					}
					return g.Concat(net.decide(g, g.Param(p[0]), &segments)...)
				},
				Reference: func(x, _ [][]float64) []float64 {
					r := reference{config: c, segments: segments, n: n}
					r.param = func(name string) []float64 { return x[names[name]] }
					logits := r.tasks(x[0])
					y := logits[0]
					for _, l := range logits[1:] {
						y = beside(y, l, n)
					}
					return y
				}}
			for _, b := range nntest.Backends(t) {
				t.Run(name+"/"+b.Name(), func(t *testing.T) { nntest.Check(t, b, check) })
			}
		}
	}
}
