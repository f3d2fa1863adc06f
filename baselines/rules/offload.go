package rules

import (
	"cmp"
	"context"
	"slices"

	"placer/baselines/budget"
	"placer/graph"
	"placer/graph/unit"
	"placer/plan"
)

// offload keeps what the accelerators cannot hold in the host's memory.
type offload struct{}

// Offload is "offload": the network on the fastest accelerators, weights that do not
// fit there in the host's memory, from where each is sent when its turn comes and
// forgotten after its last reader (FlexGen, Sheng et al., ICML 2023, section 4.2;
// updates of a weight run where it is, as in ZeRO-Offload, Ren et al., USENIX ATC
// 2021).
//
// It tries the fastest accelerator alone, the fastest two, and so on; with several,
// the slower ones hold as many of the last layers as they have room for, or all take
// even shares of the time. What an accelerator cannot hold is chosen by the seconds
// that a byte costs: small weights, whose copies are mostly latency, stay; of the
// others, which cost the same, the first in the order of use stay, or the last, or
// every so many. Room for activations and for weights under way is found by trying:
// less and less is kept until the plan fits.
func Offload() plan.Placer { return offload{} }

func (offload) Name() string    { return "offload" }
func (offload) Kind() plan.Kind { return plan.Baseline }

// kept are the shares of an accelerator's memory that are tried for weights that stay.
var kept = []float64{1, 0.97, 0.94, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0}

// most accelerators are tried together.
const mostTogether = 16

func (o offload) Place(ctx context.Context, p *plan.Problem) (*plan.Outcome, error) {
	track := budget.New(ctx, p, o.Name())
	s := newStreams(p)
	for k := 1; k <= min(len(s.fast), mostTogether); k++ {
		for _, layout := range s.layouts(k) {
			for _, stay := range []ordering{firstStay, lastStay, spreadStay} {
				before := -1
				for _, share := range kept {
					if track.Evaluations() > 0 && track.Done() {
						return track.Outcome()
					}
					sent := s.spill(layout, stay, share)
					if sent == before {
						continue // the same plan as the last one, which did not fit
					}
					before = sent
					if track.Try(s.device).Feasible() {
						break
					}
				}
				if !s.spilled {
					break // nothing to choose: the next ordering is the same plan
				}
			}
		}
	}
	if s.host < 0 {
		track.Note("the machine has no host to keep weights on")
	}
	return track.Outcome()
}

// ordering says which weights stay on an accelerator, of those that cost the same.
type ordering int

const (
	firstStay ordering = iota
	lastStay
	spreadStay
)

// weight is a unit of ops that hold parameters and do not compute, with the updates
// that must be where they are.
type weight struct {
	ops   []graph.OpID
	bytes int64
	at    int32 // cell that reads it first
	small bool  // its copy is mostly latency
}

// streams is what the layouts of one problem share.
type streams struct {
	p       *plan.Problem
	fast    []uint8 // accelerators, the fastest first
	host    int     // or -1
	lead    []int32 // [cells]
	forward []int32 // cells that lead, in their order
	bytes   []int64 // [cells] resident, of those that a cell leads
	weights []weight
	device  []uint8 // [N] of the last layout tried
	spilled bool    // whether anything of it is on the host
}

func newStreams(p *plan.Problem) *streams {
	s := &streams{p: p, fast: p.Machine.Accelerators(), host: p.Machine.Host(), device: make([]uint8, p.Graph.NumOps())}
	speed := make([]float64, p.Machine.NumDevices())
	for d := range speed {
		for _, x := range p.Evaluator.OpSeconds(d) {
			speed[d] += x
		}
	}
	slices.SortStableFunc(s.fast, func(a, b uint8) int { return cmp.Compare(speed[a], speed[b]) })
	cells := p.Units.Levels[unit.Cell]
	s.lead = p.Units.Leads(unit.Cell)
	s.bytes = make([]int64, len(s.lead))
	for c, l := range s.lead {
		if l == int32(c) {
			s.forward = append(s.forward, l)
		}
		for _, i := range cells.Ops[c] {
			s.bytes[l] += int64(p.Graph.Op(i).Resident)
		}
	}
	for _, ops := range p.Units.Levels[unit.Op].Ops {
		if w, ok := s.weight(ops, cells); ok {
			s.weights = append(s.weights, w)
		}
	}
	slices.SortStableFunc(s.weights, func(a, b weight) int { return cmp.Compare(a.at, b.at) })
	return s
}

// weight returns ops as a weight, if that is what they are.
func (s *streams) weight(ops []graph.OpID, cells *unit.Partition) (w weight, ok bool) {
	g := s.p.Graph
	w = weight{ops: ops, at: s.lead[cells.Of[ops[0]]]}
	for _, i := range ops {
		o := g.Op(i)
		f, _ := graph.FactsOf(o.Kind)
		switch f.Class {
		case graph.ClassVariable, graph.ClassConst, graph.ClassUpdate, graph.ClassMeta:
		default:
			return w, false
		}
		w.bytes += int64(o.Resident)
	}
	if s.host >= 0 && w.bytes > 0 {
		to := int(s.fast[0])
		latency, bandwidth := s.p.Machine.Transfer(s.host, to)
		w.small = float64(w.bytes) < float64(latency)*float64(bandwidth)
	}
	return w, w.bytes > 0
}

// layouts returns placements of all ops on the first k accelerators: the slower ones
// full of the last layers, and all with even shares of the time.
func (s *streams) layouts(k int) (all [][]uint8) {
	if k == 1 {
		return [][]uint8{s.cut(func(int32) uint8 { return s.fast[0] })}
	}
	full := make([]uint8, len(s.lead))
	for c := range full {
		full[c] = s.fast[0]
	}
	helper, room := k-1, s.room(k-1, helperShare)
	for x := len(s.forward) - 1; x >= 0; x-- {
		c := s.forward[x]
		for room -= s.bytes[c]; room < 0 && helper > 1; {
			helper--
			room = s.room(helper, helperShare) - s.bytes[c]
		}
		if room < 0 {
			break
		}
		full[c] = s.fast[helper]
	}
	all = append(all, s.cut(func(c int32) uint8 { return full[c] }))
	seconds := s.p.Evaluator.OpSeconds(int(s.fast[0]))
	blocks := s.p.Units.Blocks(seconds, k)
	even := make([]uint8, len(blocks))
	for i, b := range blocks {
		even[i] = s.fast[b]
	}
	return append(all, even)
}

// helperShare is the share of a slower accelerator's memory that takes weights; the
// rest is for activations.
const helperShare = 0.9

func (s *streams) room(k int, share float64) int64 {
	return int64(share * float64(s.p.Machine.Devices[s.fast[k]].Memory))
}

// cut places every op where the cell that leads its own is.
func (s *streams) cut(on func(cell int32) uint8) []uint8 {
	device := make([]uint8, len(s.device))
	for i, c := range s.p.Units.Levels[unit.Cell].Of {
		device[i] = on(s.lead[c])
	}
	return device
}

// spill sets device to the layout with the weights that an accelerator cannot hold in
// that share of its memory on the host, and returns how many these are.
func (s *streams) spill(layout []uint8, stay ordering, share float64) (sent int) {
	copy(s.device, layout)
	s.spilled = false
	if s.host < 0 {
		return 0
	}
	for k, d := range s.fast {
		room, total := s.room(k, share), int64(0)
		var here []weight
		for i, on := range layout {
			if on == d {
				room -= int64(s.p.Graph.Op(graph.OpID(i)).Resident)
			}
		}
		for _, w := range s.weights {
			if layout[w.ops[0]] == d {
				here = append(here, w)
				room += w.bytes
				total += w.bytes
			}
		}
		if room >= total {
			continue
		}
		for _, w := range leave(here, stay, room, total) {
			sent++
			for _, i := range w.ops {
				s.device[i] = uint8(s.host)
			}
		}
	}
	s.spilled = sent > 0
	return sent
}

// leave returns the weights that do not stay, of those in the order of use, total
// bytes, for which there is room.
func leave(here []weight, stay ordering, room, total int64) (out []weight) {
	if stay == lastStay {
		here = slices.Clone(here)
		slices.Reverse(here)
	}
	for _, w := range here {
		if w.small {
			room -= w.bytes
			total -= w.bytes
		}
	}
	share := float64(max(room, 0)) / float64(max(total, 1))
	passed, held := int64(0), int64(0)
	for _, w := range here {
		if w.small {
			continue
		}
		passed += w.bytes
		limit := room
		if stay == spreadStay {
			limit = min(room, int64(share*float64(passed)))
		}
		if held+w.bytes <= limit {
			held += w.bytes
			continue
		}
		out = append(out, w)
	}
	return out
}
