package measure

import (
	"placer/graph"
	"placer/graph/fuse"
	"placer/sim"
	"placer/units"
)

// program is a step as the calls that issue it, in their order. Streams and
// events are numbers until it is put on GPUs.
type program struct {
	commands []command
	streams  []streamAt
	compute  []int // [D] stream of a device's ops; none for the host's
	events   int
	messages []message
	kernels  []piece // in the order in which they are issued
	of       []int32 // [N] kernel of each op
}

type action uint8

const (
	runOp   action = iota // the kernel on its device
	record                // event on stream
	wait                  // stream for event
	send                  // message on stream
	hostFor               // the host waits for event
)

type command struct {
	do      action
	stream  int32
	event   int32
	subject int32 // kernel, or message
}

// streamAt is a stream and the device whose GPU it belongs to.
type streamAt struct {
	dev  int
	copy bool
}

// message is a tensor, or the word that an op has ended, on its way to another
// device.
type message struct {
	op       graph.OpID
	tensor   graph.TensorID // or sim.NoTensor
	from, to int
	bytes    units.Bytes
	// link is the narrowest link of the route: messages between devices on one GPU
	// queue there.
	link int32
}

const none = -1

// compile returns the program of p: kernel by kernel, behind each the messages
// that it sends.
func compile(p *Problem) *program {
	g, d := p.Graph, p.Machine.NumDevices()
	c := &program{compute: make([]int, d)}
	c.kernels, c.of = readKernels(p)
	for k := range c.compute {
		c.compute[k] = none
		if p.GPU[k] != Host {
			c.compute[k] = c.stream(streamAt{k, false})
		}
	}
	sends := c.findMessages(p)
	type key struct {
		kernel int32
		t      graph.TensorID
		dev    int
	}
	arrived := map[key]int32{} // event of a message
	ways := map[[3]int]int{}
	for k := range c.kernels {
		x := &c.kernels[k]
		dev := x.dev
		// Wait for what comes from elsewhere.
		waited := map[int32]bool{}
		from := func(q graph.OpID, t graph.TensorID) {
			if int(p.Plan.Device[q]) == dev {
				return
			}
			e, ok := arrived[key{c.of[q], t, dev}]
			if ok && !waited[e] {
				waited[e] = true
				c.waitFor(c.compute[dev], e)
			}
		}
		for _, i := range x.ops {
			for _, t := range g.Inputs(i) {
				from(g.Tensor(t).Producer, t)
			}
			for _, q := range g.Control(i) {
				from(q, sim.NoTensor)
			}
		}
		c.commands = append(c.commands, command{do: runOp, stream: int32(c.compute[dev]), event: none, subject: int32(k)})
		if len(sends[k]) == 0 {
			continue
		}
		done := int32(none)
		if c.compute[dev] != none {
			done = c.event()
			c.commands = append(c.commands, command{do: record, stream: int32(c.compute[dev]), event: done})
		}
		for _, s := range sends[k] {
			m := &c.messages[s]
			on := c.way(p, m, ways)
			e := c.event()
			if done != none {
				c.waitFor(on, done)
			}
			c.commands = append(c.commands, command{do: send, stream: int32(on), event: none, subject: int32(s)}, command{do: record, stream: int32(on), event: e})
			arrived[key{int32(k), m.tensor, m.to}] = e
		}
	}
	return c
}

func (c *program) stream(s streamAt) int {
	c.streams = append(c.streams, s)
	return len(c.streams) - 1
}

func (c *program) event() int32 {
	c.events++
	return int32(c.events - 1)
}

// waitFor makes a stream, or the host where there is none, wait for event e.
func (c *program) waitFor(stream int, e int32) {
	if stream == none {
		c.commands = append(c.commands, command{do: hostFor, stream: none, event: e})
	} else {
		c.commands = append(c.commands, command{do: wait, stream: int32(stream), event: e})
	}
}

// way returns the stream on which m travels: one for each pair of GPUs and for
// each direction between a GPU and the host; between devices on one GPU, one for
// each link.
func (c *program) way(p *Problem, m *message, ways map[[3]int]int) int {
	owner := m.from
	if p.GPU[m.from] == Host {
		owner = m.to
	}
	k := [3]int{m.from, m.to, none}
	if p.GPU[m.from] == p.GPU[m.to] {
		k = [3]int{none, p.GPU[m.from], int(m.link)}
	}
	s, ok := ways[k]
	if !ok {
		s = c.stream(streamAt{owner, true})
		ways[k] = s
	}
	return s
}

// findMessages lists the messages of every kernel, [K]: its outputs by tensor,
// then the word of its end, to each device in ascending order. A result that the
// kernel keeps to itself has no bytes for those who read its shape. Messages
// between processors of the host need no way.
func (c *program) findMessages(p *Problem) [][]int {
	g := p.Graph
	sends := make([][]int, len(c.kernels))
	add := func(i graph.OpID, t graph.TensorID, bytes units.Bytes, users []graph.OpID) {
		k, from := c.of[i], int(p.Plan.Device[i])
		var to uint64
		for _, u := range users {
			to |= 1 << p.Plan.Device[u]
		}
		for dev := range p.Machine.NumDevices() {
			if dev == from || to>>dev&1 == 0 || p.GPU[dev] == Host && p.GPU[from] == Host {
				continue
			}
			link, least := int32(none), units.BytesPerSecond(0)
			for _, l := range p.Machine.Route(from, dev) {
				if b := p.Machine.Links[l].Bandwidth; link == none || b < least {
					link, least = l, b
				}
			}
			sends[k] = append(sends[k], len(c.messages))
			c.messages = append(c.messages, message{op: i, tensor: t, from: from, to: dev, bytes: bytes, link: link})
		}
	}
	after := make([][]graph.OpID, len(c.kernels)) // by control dependency
	for i := range g.NumOps() {
		for _, q := range g.Control(graph.OpID(i)) {
			after[c.of[q]] = append(after[c.of[q]], graph.OpID(i))
		}
	}
	for k := range c.kernels {
		for _, i := range c.kernels[k].ops {
			first, end := g.Outputs(i)
			for t := first; t < end; t++ {
				bytes := g.Tensor(t).Bytes
				if !c.held(g, t) {
					bytes = 0
				}
				add(i, t, bytes, g.Consumers(t))
			}
		}
		add(c.kernels[k].ops[0], sim.NoTensor, 0, after[k])
	}
	return sends
}

// held reports whether tensor t takes memory.
func (c *program) held(g *graph.Graph, t graph.TensorID) bool {
	k := c.of[g.Tensor(t).Producer]
	return len(c.kernels[k].ops) == 1 || fuse.Held(g, t, func(i graph.OpID) bool { return c.of[i] == k })
}
