// Package parallel runs functions side by side.
package parallel

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Group waits for functions in goroutines of their own. Unlike sync.WaitGroup it
// hands a panic to the goroutine that waits, which may recover it.
type Group struct {
	wait  sync.WaitGroup
	once  sync.Once
	first *Panic
}

// Panic is a panic of a function of a Group.
type Panic struct {
	Value any
	Stack []byte // of the function
}

func (p *Panic) Error() string { return fmt.Sprint(p.Value) }

// Go runs f.
func (g *Group) Go(f func()) {
	g.wait.Go(func() {
		defer func() {
			if x := recover(); x != nil {
				g.once.Do(func() { g.first = Caught(x) })
			}
		}()
		f()
	})
}

// Wait waits for all functions and panics with the first *Panic of one, if any.
func (g *Group) Wait() {
	g.wait.Wait()
	if g.first != nil {
		panic(g.first)
	}
}

// Caught returns x, which recover has returned, as a *Panic.
func Caught(x any) *Panic {
	if p, ok := x.(*Panic); ok {
		return p
	}
	return &Panic{x, debug.Stack()}
}
