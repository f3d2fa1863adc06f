package transfer

import (
	"math"
	"slices"

	"placer/graph"
)

// dynamicNames are the columns of a unit on a device, given what is decided.
var dynamicNames = []string{
	"start_of_unit", "start_of_mean", "idle_of_unit", "idle_of_mean", "free_of_mean", "load_over_least", "load", "load_after",
	"sent_of_unit", "sent_of_mean", "contact_of_unit", "contact_of_mean", "contact_share",
	"partner", "no_partner", "chain_last", "chain_share", "segment_last", "segment_share", "layer_last", "layer_share", "expert_last", "expert_share", "expert_new", "block_last", "block_share", "block_new",
	"held", "fits", "fresh", "last", "pipeline", "in_block", "earliest", "least_loaded", "used",
	"advice", "advice_gap_of_unit", "advice_gap_of_mean", "by_list", "by_expert", "by_block", "balance", "cling", "bound", "gaps", "own", "drafted", "planned",
}

var numDynamic = len(dynamicNames)

// advised is the column of the guide's choice.
var advised = slices.Index(dynamicNames, "advice")

// own is the column of Guide.Own.
var own = slices.Index(dynamicNames, "own")

// trust is the score of the advised device: two devices with nothing else to tell
// them apart follow advice 19 times in 20.
const trust = 3

// columns writes the dynamic columns of unit u, whose node v is next, for every
// device, [D, numDynamic].
func (x *state) columns(u int32, v graph.OpID, ok []bool, to []float32) {
	s := x.s
	if s.unit[v] != u { // a variable, read by v: what is ready is the reader
		v = none
	}
	work, mean := s.own[u]+1e-7, s.mean
	decided := 0.0
	clear(x.contact)
	for _, c := range s.near[u] {
		d := x.device[c.unit]
		if d == none && x.drafted {
			d = x.planned[c.unit]
		}
		if d != none {
			x.contact[d] += c.seconds
			decided += c.seconds
		}
	}
	for d := range x.total {
		x.total[d] = x.load[d] + x.pending[d]
	}
	if x.drafted {
		x.total[x.planned[u]] -= s.work[x.planned[u]][u]
	}
	least, lightest, freest := math.Inf(1), math.Inf(1), math.Inf(1)
	for d := range s.d {
		x.ready[d] = 0
		if v != none {
			x.ready[d] = x.readyAt(v, d, false)
		}
		length := 0.0
		if v != none {
			length = s.seconds[d][v]
		}
		x.start[d] = x.devices[d].earliest(x.ready[d], length)
		least = min(least, x.start[d])
		lightest, freest = min(lightest, x.total[d]), min(freest, x.devices[d].free)
	}
	readiest := math.Inf(1)
	for d := range s.d {
		readiest = min(readiest, x.ready[d])
	}
	done := 0.0
	for d := range s.d {
		done += x.load[d]
	}
	partner := int32(none)
	if p := s.partner[u]; p != none {
		partner = x.device[p]
	}
	b := func(y bool) float32 {
		if y {
			return 1
		}
		return 0
	}
	chain, segment, layer := s.chain.of[u], s.segment.of[u], s.layer.of[u]
	expert, blk := s.expert.of[u], s.block.of[u]
	choice := x.advice(u, v, decided, ok)
	block := min(float64(s.d-1), math.Floor((done+s.own[u]/2)/mean))
	for d := range s.d {
		start, free := x.start[d], x.devices[d].free
		apart := decided - x.contact[d]
		share := 0.0
		if decided > 0 {
			share = x.contact[d] / decided
		}
		number := x.number[d]
		if number == none {
			number = x.used
		}
		row := to[d*numDynamic : (d+1)*numDynamic]
		copy(row, []float32{
			squash((start - least) / work), squash(8 * (start - least) / mean), squash((x.ready[d] - free) / work), squash(8 * (x.ready[d] - free) / mean),
			squash(8 * (free - freest) / mean), squash(8 * (x.total[d] - lightest) / mean), squash(2 * x.total[d] / mean), squash(4 * (x.total[d] + s.work[d][u] - mean) / mean),
			squash((x.ready[d] - readiest) / work), squash(8 * (x.ready[d] - readiest) / mean), squash(apart / work), squash(8 * apart / mean), float32(share),
			b(partner == int32(d)), b(partner == none), b(x.chain.last[chain] == int32(d)), x.chain.share(chain, d, s.d), b(x.segment.last[segment] == int32(d)), x.segment.share(segment, d, s.d),
			b(x.layer.last[layer] == int32(d)), x.layer.share(layer, d, s.d),
			b(x.expert.last[expert] == int32(d)), x.expert.share(expert, d, s.d), b(x.expert.last[expert] == none), b(x.block.last[blk] == int32(d)), x.block.share(blk, d, s.d), b(x.block.last[blk] == none),
			float32(float64(x.held[d]) / float64(s.memory[d])), b(x.held[d]+s.resided[u] <= s.memory[d]), b(x.number[d] == none), b(x.last == int32(d)),
			float32((float64(number)+0.5)/float64(s.d) - (done+s.own[u]/2)/s.total), b(float64(number) == block), b(start <= least), b(x.total[d] <= lightest),
			float32(float64(x.used) / float64(s.d)),
			b(choice == int32(d)), squash((x.cost[d] - x.cost[choice]) / work), squash(8 * (x.cost[d] - x.cost[choice]) / mean),
			b(x.guide.Rule == ByList), b(x.guide.Rule == ByExpert), b(x.guide.Rule == ByBlock), squash(x.guide.Balance), squash(x.guide.Cling), b(x.guide.Bound), b(x.guide.Gaps), x.guide.Own, b(x.drafted), b(x.drafted && x.planned[u] == int32(d)),
		})
	}
}
