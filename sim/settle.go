package sim

// settle brings the bytes of device d up to time t. Within an instant the order
// of changes does not matter: the peak is taken when the instant has passed, and
// nothing is allocated and freed at one instant.
func (s *Simulator) settle(d int, t float64) {
	dev := &s.devs[d]
	for {
		at := min(dev.start, dev.release)
		if at > t {
			return
		}
		dev.advance(at)
		if dev.start == at {
			s.allocate(dev, d, at)
		} else {
			s.release(dev, d, at)
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
	row, next := s.startAt[d*s.d:(d+1)*s.d], inf
	for src, first := range row {
		for first <= t {
			ln := &s.lanes[src*s.d+d]
			x := &s.transfers[ln.start]
			dev.bytes += x.size
			ln.start = x.next
			first = inf
			if x.next != none {
				first = s.transfers[x.next].start
			}
			row[src] = first
		}
		next = min(next, first)
	}
	dev.start = next
}

// release ends the transfers from device d that have ended by time t.
func (s *Simulator) release(dev *deviceState, d int, t float64) {
	row, next := s.releaseAt[d*s.d:(d+1)*s.d], inf
	for dst, first := range row {
		for first <= t {
			ln := &s.lanes[d*s.d+dst]
			x := &s.transfers[ln.release]
			s.released(dev, d, x)
			ln.release = x.next
			first = inf
			if x.next != none {
				first = s.transfers[x.next].end
			}
			row[dst] = first
		}
		next = min(next, first)
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
