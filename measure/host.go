package measure

import (
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// hostMemory is what ops on the host's processor work on: what they time is
// approximate, since the host also issues everything else.
type hostMemory struct {
	from, to []float32
	workers  int
}

// hostWords bounds the memory of ops on the host; larger ones go through it again.
const hostWords = 16 << 20

// runOnHost does w on all cores and returns when it is done.
func (x *contexts) runOnHost(w *work) {
	switch w.kind {
	case product:
		p := &w.product
		a, b, c := p.M*p.K, p.K*p.N, p.M*p.N
		n := max(a, b, c)
		x.host.room(n)
		for range w.parts * p.Batch {
			x.host.parallel(p.M, func(lo, hi int) {
				gonum.Implementation{}.Sgemm(blas.NoTrans, blas.NoTrans, hi-lo, p.N, p.K, 1, x.host.from[lo*p.K:hi*p.K], p.K, x.host.from[:b], p.N, 0, x.host.to[lo*p.N:hi*p.N], p.N)
			})
		}
	case stream:
		x.host.stream(int(w.in/4), int(w.out/4), int(w.fma))
	}
}

func (h *hostMemory) room(words int) {
	if len(h.from) < words {
		h.from, h.to = make([]float32, words), make([]float32, words)
		for i := range h.from {
			h.from[i] = 0.5 + float32(i%1000)/2000
		}
	}
}

// parallel divides 0..n among the workers.
func (h *hostMemory) parallel(n int, f func(lo, hi int)) {
	var wg sync.WaitGroup
	k := max(1, min(h.workers, n))
	for w := range k {
		wg.Add(1)
		go func() {
			defer wg.Done()
			f(n*w/k, n*(w+1)/k)
		}()
	}
	wg.Wait()
}

// stream reads in and writes out words, with 2*fma operations for each word read.
func (h *hostMemory) stream(in, out, fma int) {
	h.room(min(max(in, out), hostWords))
	for at := 0; at < max(in, out); at += hostWords {
		r, w := max(0, min(in-at, hostWords)), max(0, min(out-at, hostWords))
		h.parallel(max(r, w), func(lo, hi int) {
			sum := float32(0)
			for i := lo; i < min(hi, r); i++ {
				x := h.from[i]
				for range fma {
					sum = sum*x + x
				}
				if i < w {
					h.to[i] = x + sum
				}
			}
			for i := max(lo, r); i < min(hi, w); i++ {
				h.to[i] = sum
			}
		})
	}
}
