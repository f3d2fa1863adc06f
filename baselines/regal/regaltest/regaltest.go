// Package regaltest owns what the tests of REGAL's and GAS's policies have in common.
package regaltest

import (
	"context"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"placer/baselines/regal/brkga"
	"placer/baselines/regal/propose"
	"placer/baselines/regal/sched"
	"placer/baselines/regal/synth"
	"placer/nn"
)

// Backend returns the backend in Go on one goroutine, whose results no library changes.
func Backend(t testing.TB) *nn.Backend {
	t.Helper()
	b, err := nn.NewBackend(nn.Config{Libraries: []string{}, Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Small returns synthetic graph k of at most 60 ops.
func Small(k uint64) *sched.Problem {
	c := synth.Default()
	c.MaxOps = 60
	return c.Generate(rand.New(rand.NewPCG(82, k)))
}

// Propose checks that what p proposes for a small graph follows from the random stream, on
// one goroutine or many, leaves 4,600 of 5,000 evaluations, and is refused for three
// devices. It returns the proposal.
func Propose(t *testing.T, p propose.Proposer) *propose.Proposal {
	t.Helper()
	q := Small(1)
	stream := func() *rand.Rand { return rand.New(rand.NewPCG(83, 0)) }
	want, err := p.Propose(context.Background(), q, sched.RunTime, stream())
	if err != nil {
		t.Fatal(err)
	}
	if want.Evaluations != 400 || want.Pin != propose.Heaviest(q, sched.RunTime) || len(want.Distributions.(brkga.Beta).Keys) != 3*q.N() {
		t.Errorf("%d evaluations, pin %d", want.Evaluations, want.Pin)
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			got, err := p.Propose(context.Background(), q, sched.RunTime, stream())
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("another proposal, %v", err)
			}
		})
	}
	wait.Wait()
	m := q.Machine()
	m.Devices = 3
	three, err := q.With(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Propose(context.Background(), three, sched.RunTime, stream()); err == nil {
		t.Error("three devices passed")
	}
	return want
}
