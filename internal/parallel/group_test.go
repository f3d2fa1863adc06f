package parallel_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"placer/internal/parallel"
)

// TestGroup: all functions end, and the goroutine that waits gets the panic of one.
func TestGroup(t *testing.T) {
	var ended atomic.Int32
	defer func() {
		p, ok := recover().(*parallel.Panic)
		if !ok || p.Error() != "third" || !strings.Contains(string(p.Stack), "TestGroup") || ended.Load() != 9 {
			t.Errorf("%v, %d ended", p, ended.Load())
		}
	}()
	var outer parallel.Group
	outer.Go(func() {
		var g parallel.Group
		for k := range 10 {
			g.Go(func() {
				if k == 3 {
					panic("third")
				}
				ended.Add(1)
			})
		}
		g.Wait()
	})
	outer.Wait()
}

func ExampleGroup() {
	var g parallel.Group
	squares := make([]int, 4)
	for k := range squares {
		g.Go(func() { squares[k] = k * k })
	}
	g.Wait()
	fmt.Println(squares)
	// Output: [0 1 4 9]
}
