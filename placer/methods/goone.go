package methods

import (
	"context"

	"placer/placer/policy/cem"
	"placer/placer/policy/fusion"
	"placer/placer/policy/goone"
	"placer/placer/policy/joint"
	"placer/placer/search"
	"placer/plan"
)

// goOne is the row GO-one: the policy that learns on the graph at hand, by the tasks
// of the problem: the network decides placement or schedule alone, package joint what
// has other tasks.
type goOne struct {
	network *goone.Policy
	joint   *joint.Policy
	tasks   plan.Tasks // of the last Place
}

func newGoOne(o Options) (plan.Placer, error) {
	c := goone.Default()
	c.Level, c.Workers = o.Level, max(1, o.Workers)
	network, err := goone.New(c)
	if err != nil {
		return nil, err
	}
	if o.NetworkDevice != nil {
		network.Use(o.NetworkDevice)
	}
	search, fuse := cem.Default(), fusion.Default()
	search.Level, search.Workers, fuse.Workers = c.Level, c.Workers, c.Workers
	g := &goOne{network: network, joint: joint.New(search, fuse)}
	if o.Earlier != nil {
		g.network.Resume(o.Earlier, o.Checkpoint)
		g.joint.Resume(o.Earlier, o.Checkpoint)
	}
	return g, nil
}

// Name is as plan.Placer says.
func (*goOne) Name() string { return GoOne }

// Kind is as plan.Placer says.
func (*goOne) Kind() plan.Kind { return plan.Policy }

// Place is as plan.Placer says.
func (g *goOne) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	g.tasks = p.Tasks
	out, err := renamed{g.of(p.Tasks), GoOne}.Place(ctx, p)
	if out != nil && !ByNetwork(p.Tasks) {
		out.Notes = append(out.Notes, "learnt without the network: placement and schedule by the cross-entropy method, fusion by class")
	}
	return out, err
}

// ByNetwork reports whether GO-one's network is what decides tasks: placement or
// schedule alone. Others are learnt without it, so Options.NetworkDevice has no effect
// on them.
func ByNetwork(tasks plan.Tasks) bool {
	return tasks == 0 || tasks == plan.Place || tasks == plan.Schedule
}

func (g *goOne) of(tasks plan.Tasks) interface {
	plan.Placer
	search.Saver
} {
	if ByNetwork(tasks) {
		return g.network
	}
	return g.joint
}

// Save writes what the policy has learnt so far.
func (g *goOne) Save(path string) error { return g.of(g.tasks).Save(path) }
