package device

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"placer/graphsage"
	"placer/hw/gpu/fake"
	"placer/nn"
	"placer/nn/gonet"
	"placer/ppo"
)

// pretended returns a device on a fake GPU whose kernels do what kernels says.
func pretended(t testing.TB, kernels map[string]fake.Kernel) *Device {
	t.Helper()
	c := fake.Default()
	c.Kernels = kernels
	g := fake.New(c)
	d, err := Open(g, g.BLAS(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// networkCase is a network's configuration and a batch for it.
type networkCase struct {
	name   string
	config gonet.Config
	batch  *gonet.Batch
	free   bool
	// many: among so many numbers some lie, within rounding, where a maximum or a
	// ReLU turns. A gradient then goes another way for one node and column.
	many bool
}

// randomBatch returns a graph of n nodes with lists of up to three others.
func randomBatch(r *rand.Rand, n, features int) *gonet.Batch {
	b := &gonet.Batch{X: nn.NewMat(n, features), Neighbours: &graphsage.Neighbours{Start: []int32{0}}}
	for i := range b.X.V {
		b.X.V[i] = float32(r.NormFloat64())
	}
	for v := range n {
		for range r.IntN(4) * min(v, 1) { // some have none, some the same twice
			b.Neighbours.Index = append(b.Neighbours.Index, int32(r.IntN(n)))
		}
		b.Neighbours.Start = append(b.Neighbours.Start, int32(len(b.Neighbours.Index)))
	}
	return b
}

// cases cover every operation that the network is made of.
func cases(r *rand.Rand) []networkCase {
	small := func() gonet.Config {
		c := gonet.Default(6, 4)
		c.Embedding.Layers, c.Embedding.Width = 2, 12
		c.Decision.Width, c.Decision.Heads, c.Decision.HeadWidth, c.Decision.Inner = 12, 3, 5, 20
		c.Decision.Segment, c.Decision.Memory = 8, 8
		return c
	}
	batch := func(n int) *gonet.Batch { return randomBatch(r, n, 6) }
	masked := batch(53) // several interior segments: products batched over them
	masked.Allowed = []bool{true, false, true, true}
	each := batch(13)
	for range 13 {
		each.Allowed = append(each.Allowed, true, r.IntN(2) == 0, r.IntN(2) == 0, true)
	}
	tasks := small()
	tasks.Decision.ScheduleLevels, tasks.Decision.FusionLevels, tasks.Decision.FusionKinds = 3, 2, 2
	refined := small()
	refined.Iterations, refined.Decision.Memory, refined.Decision.ModulateDense = 2, 4, true
	copies := batch(19)
	copies.Copies = 3
	for range 3 * 19 {
		copies.Previous = append(copies.Previous, int32(r.IntN(5)-1))
	}
	plain := small()
	plain.Embedding.Residual, plain.Decision.Attention, plain.Decision.Modulation, plain.DetachValue = false, false, false, true
	return []networkCase{
		{"masked", small(), masked, false, false}, {"mask of each node", small(), each, true, false}, {"three tasks", tasks, batch(21), true, false},
		{"refined", refined, copies, false, false}, {"ablated", plain, batch(9), false, false},
	}
}

// networks returns the same network on the CPU and on d.
func networks(t *testing.T, p networkCase, d *Device) (cpu, device *gonet.Network) {
	t.Helper()
	for _, x := range []struct {
		n **gonet.Network
		d nn.Device
	}{{&cpu, nil}, {&device, d}} {
		c := nn.Default()
		c.Device = x.d
		b, err := nn.NewBackend(c)
		if err != nil {
			t.Fatal(err)
		}
		if *x.n, err = gonet.New(p.config, rand.New(rand.NewPCG(5, 6)), b); err != nil {
			t.Fatal(err)
		}
	}
	return cpu, device
}

// objective samples decisions of a network's outputs, some of them far from it.
func objective(r *rand.Rand, p networkCase, out gonet.Output, perChoice bool) *ppo.Objective {
	samples, copies := 4, max(p.batch.Copies, 1)
	if copies > 1 {
		samples = copies
	}
	o := &ppo.Objective{ClipEps: 0.2, Entropy: 0.05, ValueCost: 0.5}
	for k := range samples {
		var actions []int32
		var logProb []float32
		for _, x := range out.Tasks {
			if copies > 1 {
				x = x.Rows(k*x.N/copies, (k+1)*x.N/copies)
			}
			a, l := make([]int32, x.N), make([]float32, x.N)
			ppo.Sample(x, 1, r, a, l)
			actions, logProb = append(actions, a...), append(logProb, l...)
		}
		for i := range logProb {
			logProb[i] += float32(0.3 * r.NormFloat64())
		}
		advantage := []float32{float32(r.NormFloat64())}
		for perChoice && len(advantage) < len(actions) {
			advantage = append(advantage, float32(r.NormFloat64()))
		}
		o.Actions, o.LogProb, o.Advantage = append(o.Actions, actions), append(o.LogProb, logProb), append(o.Advantage, advantage)
		for range len(out.Values) / copies {
			o.Return = append(o.Return, float32(r.NormFloat64()))
		}
	}
	return o
}

func close32(t *testing.T, what string, got, want []float32, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	size := 1e-3
	for _, v := range want {
		if v > nn.Masked {
			size = max(size, math.Abs(float64(v)))
		}
	}
	for i := range got {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= tolerance*size) {
			t.Errorf("%s: element %d of %d is %g, want %g", what, i, len(got), got[i], want[i])
			return
		}
	}
}

// TestNetwork: forward, gradients and an optimiser step of the whole network on
// the fake, whose kernels are written in Go, equal the CPU's.
func TestNetwork(t *testing.T) { compareNetworks(t, pretended(t, references()), 2e-5) }

// apart returns the norm of got - want over that of want. Sums that are zero but
// for rounding count as small.
func apart(got, want []float32) float64 {
	var difference, size float64
	for i, v := range want {
		w := float64(got[i]) - float64(v)
		difference, size = difference+w*w, size+float64(v)*float64(v)
	}
	return math.Sqrt(difference) / max(math.Sqrt(size), 1e-4)
}

// compareNetworks compares a device with the CPU on every problem.
func compareNetworks(t *testing.T, d *Device, tolerance float64) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, p := range cases(r) {
		t.Run(p.name, func(t *testing.T) { compareNetwork(t, d, r, p, tolerance) })
	}
}

// compareNetwork compares a device with the CPU on p, for three steps.
func compareNetwork(t *testing.T, d *Device, r *rand.Rand, p networkCase, tolerance float64) {
	cpu, device := networks(t, p, d)
	defer device.Close()
	for _, n := range []*gonet.Network{cpu, device} {
		if b := *p.batch; p.free {
			b.InstanceLogits = n.AddInstanceLogits("here", b.X.N)
		}
	}
	on := func(n *gonet.Network) *gonet.Batch {
		b := *p.batch
		if p.free {
			b.InstanceLogits = n.AddInstanceLogits("here", b.X.N)
		}
		return &b
	}
	for step := range 3 {
		want, err := cpu.Forward(on(cpu))
		if err != nil {
			t.Fatal(err)
		}
		got, err := device.Forward(on(device))
		if err != nil {
			t.Fatal(err)
		}
		for i := range want.Tasks {
			close32(t, "logits", got.Tasks[i].V, want.Tasks[i].V, tolerance)
		}
		close32(t, "values", got.Values, want.Values, tolerance)
		o := objective(r, p, want, step == 1)
		again := *o
		var mine, theirs nn.Objective = o, &again
		if step == 2 {
			labels := make([]int32, want.Logits.N/max(p.batch.Copies, 1))
			mine, theirs = &nn.CrossEntropy{Labels: labels}, &nn.CrossEntropy{Labels: labels}
		}
		a, err := cpu.Backward(on(cpu), mine)
		if err != nil {
			t.Fatal(err)
		}
		b, err := device.Backward(on(device), theirs)
		if err != nil {
			t.Fatal(err)
		}
		close32(t, "loss", []float32{float32(b)}, []float32{float32(a)}, tolerance)
		if step < 2 {
			s, q := o.Stats, again.Stats
			close32(t, "statistics", []float32{float32(q.Entropy), float32(q.KL1), float32(q.KL3), float32(q.ClipFraction), float32(q.ValueLoss)},
				[]float32{float32(s.Entropy), float32(s.KL1), float32(s.KL3), float32(s.ClipFraction), float32(s.ValueLoss)}, tolerance)
		}
		theirParams := device.Params().All()
		for i, q := range cpu.Params().All() {
			if p.many {
				if x := apart(theirParams[i].Grad, q.Grad); x > 1e-2 {
					t.Errorf("gradient of %s is %g of its norm away", q.Name, x)
				}
				continue
			}
			close32(t, "gradient of "+q.Name, theirParams[i].Grad, q.Grad, 5*tolerance)
		}
		x, err := cpu.Update(1e-3)
		if err != nil {
			t.Fatal(err)
		}
		y, err := device.Update(1e-3)
		if err != nil {
			t.Fatal(err)
		}
		norms := 5 * tolerance
		if p.many {
			norms = 1e-2
		}
		close32(t, "norm", []float32{float32(y)}, []float32{float32(x)}, norms)
		// Adam divides by the gradient's size: where that is rounding, so is the
		// direction. A step is 1e-3 at most, so both stay near.
		theirParams = device.Params().All()
		for i, q := range cpu.Params().All() {
			for j := range q.Value {
				if math.Abs(float64(theirParams[i].Value[j]-q.Value[j])) > 2.1e-3 {
					t.Fatalf("step %d: %s[%d] is %g, want %g", step, q.Name, j, theirParams[i].Value[j], q.Value[j])
				}
				theirParams[i].Value[j] = q.Value[j] // compare steps, not paths
			}
		}
	}
}

// TestFiniteDifferences: the gradient that the device adds up is the slope of the
// loss it computes, so neither rests on the CPU's backward pass.
func TestFiniteDifferences(t *testing.T) {
	d := pretended(t, references())
	r := rand.New(rand.NewPCG(3, 4))
	for _, p := range cases(r)[:2] {
		p.config.Decision.Memory = 0 // the memory's states get no gradient, which differences would show
		_, n := networks(t, p, d)
		out, err := n.Forward(p.batch)
		if err != nil {
			t.Fatal(err)
		}
		o := objective(r, p, out, true)
		o.ClipEps = 10 // no kinks
		loss := func() float64 {
			l, err := n.Backward(p.batch, o)
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		loss()
		var want [][]float32
		for _, q := range n.Params().All() {
			want = append(want, append([]float32(nil), q.Grad...))
		}
		for i, q := range n.Params().All() {
			if r.IntN(12) > 0 {
				continue
			}
			j := r.IntN(len(q.Value))
			const h = 4e-3
			v := q.Value[j]
			at := func(x float32) float64 {
				n.Params().All()[i].Value[j] = x
				return loss()
			}
			got := (at(v+h) - at(v-h)) / (2 * h)
			at(v)
			if math.Abs(got-float64(want[i][j])) > 2e-3+0.02*math.Abs(got) {
				t.Errorf("%s: %s[%d]: slope %g, gradient %g", p.name, q.Name, j, got, want[i][j])
			}
		}
		n.Close()
	}
}

// TestCheckpoint: a network trained on the device is saved, loaded on the CPU and
// goes on as the one on the device does.
func TestCheckpoint(t *testing.T) {
	d := pretended(t, references())
	p := cases(rand.New(rand.NewPCG(1, 2)))[0]
	_, device := networks(t, p, d)
	defer device.Close()
	o := &nn.CrossEntropy{Labels: make([]int32, p.batch.X.N)}
	train := func(n *gonet.Network) {
		for range 2 {
			if _, err := n.Backward(p.batch, o); err != nil {
				t.Fatal(err)
			}
			if _, err := n.Update(1e-3); err != nil {
				t.Fatal(err)
			}
		}
	}
	train(device)
	var file bytes.Buffer
	if err := device.Save(&file, nil); err != nil {
		t.Fatal(err)
	}
	b, err := nn.NewBackend(nn.Default())
	if err != nil {
		t.Fatal(err)
	}
	cpu, _, err := gonet.Load(&file, b)
	if err != nil {
		t.Fatal(err)
	}
	train(device)
	train(cpu)
	for i, q := range cpu.Params().All() {
		close32(t, q.Name, device.Params().All()[i].Value, q.Value, 5e-3)
	}
}

// TestChanges: a network whose graphs, features, masks and decisions before
// change from run to run, the shapes staying, reads none of those before.
func TestChanges(t *testing.T) {
	d := pretended(t, references())
	r := rand.New(rand.NewPCG(9, 9))
	p := cases(r)[3] // with decisions before, in copies
	cpu, device := networks(t, p, d)
	defer device.Close()
	var all []*gonet.Batch
	for k := range 8 {
		b := randomBatch(r, p.batch.X.N, p.batch.X.D)
		b.Copies = p.batch.Copies
		if k%3 > 0 {
			b.Previous = slices.Clone(p.batch.Previous)
			r.Shuffle(len(b.Previous), func(i, j int) { b.Previous[i], b.Previous[j] = b.Previous[j], b.Previous[i] })
		}
		switch k % 4 {
		case 1:
			b.Allowed = []bool{true, false, true, true}
		case 2, 3:
			for range b.X.N {
				b.Allowed = append(b.Allowed, true, r.IntN(2) == 0, r.IntN(2) == 0, true)
			}
		}
		if k%2 == 1 { // what the one before has, in another graph
			b.X = all[k-1].X
		}
		all = append(all, b)
	}
	for range 40 {
		b := all[r.IntN(len(all))]
		want, err := cpu.Forward(b)
		if err != nil {
			t.Fatal(err)
		}
		got, err := device.Forward(b)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want.Tasks {
			close32(t, "logits", got.Tasks[i].V, want.Tasks[i].V, 2e-5)
		}
		if r.IntN(3) == 0 { // weights change, too, here and there
			q := cpu.Params().All()[0]
			q.Value[0] += 0.5
			device.Params().All()[0].Value[0] = q.Value[0]
		}
	}
}
