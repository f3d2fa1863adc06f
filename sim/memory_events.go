package sim

// memoryEvents brings the bytes of device d up to time t. Within an instant the order
// of changes does not matter: the peak is taken when the instant has passed, and
// nothing is allocated and freed at one instant.
func (s *Simulator) memoryEvents(d int, t float64) {
	dev := &s.devs[d]
	for {
		switch {
		case dev.start <= t && dev.start <= dev.release:
			dev.advance(dev.start)
			s.allocate(dev, d, dev.start)
		case dev.release <= t:
			dev.advance(dev.release)
			s.release(dev, d, dev.release)
		default:
			return
		}
	}
}

// advance notes the peak before time t.
func (dev *deviceState) advance(t float64) {
	if t > dev.instant {
		dev.peak = max(dev.peak, dev.bytes)
		dev.instant = t
	}
}

// allocate makes room for the transfers to device d that start by time t.
func (s *Simulator) allocate(dev *deviceState, d int, t float64) {
	boxes, next := s.inboxes[s.inboxAt[d]:s.inboxAt[d+1]], inf
	for k := range boxes {
		in := &boxes[k]
		for in.startAt <= t {
			x := &s.transfers[in.start]
			dev.bytes += x.size
			in.start, in.startAt = x.nextIn, inf
			if x.nextIn != none {
				in.startAt = s.transfers[x.nextIn].start
			}
		}
		if in.startAt < next {
			next = in.startAt
		}
	}
	dev.start = next
}

// release ends the transfers from device d that have ended by time t.
func (s *Simulator) release(dev *deviceState, d int, t float64) {
	boxes, next := s.outboxes[s.outboxAt[d]:s.outboxAt[d+1]], inf
	for k := range boxes {
		out := &boxes[k]
		for out.releaseAt <= t {
			x := &s.transfers[out.release]
			s.released(dev, d, x)
			out.release, out.releaseAt = x.nextOut, inf
			if x.nextOut != none {
				out.releaseAt = s.transfers[x.nextOut].end
			}
		}
		if out.releaseAt < next {
			next = out.releaseAt
		}
	}
	dev.release = next
}

// released ends the use that transfer x made of its tensor on its sender d.
func (s *Simulator) released(dev *deviceState, d int, x *transfer) {
	if r := s.messages[x.message()].row; r != none {
		s.drop(dev, d, r)
	} else {
		dev.bytes -= x.size
	}
}
