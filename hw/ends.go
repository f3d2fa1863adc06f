package hw

import (
	"fmt"

	"placer/units"
)

// Sender is the value of EndCosts.Occupies where copies occupy the sender.
const Sender = "sender"

// EndCosts is what a transfer costs the devices at its ends
// (docs/adr/0027-copies-that-occupy-the-sender.md). The zero value is a transfer
// that holds the link and costs the devices nothing.
type EndCosts struct {
	// Occupies is Sender, or empty for the link. Where it is Sender, latency and
	// bandwidth of the link are those of the sender's copy.
	Occupies string `json:"occupies,omitempty"`
	// Delivery is the time from the end of a copy to where a reader may begin.
	Delivery units.Seconds `json:"delivery,omitempty"`
	// Receive and the bytes over ReceiveBandwidth are what the first op that reads the
	// tensor on a device takes longer; zero for nothing.
	Receive          units.Seconds        `json:"receive,omitempty"`
	ReceiveBandwidth units.BytesPerSecond `json:"receive_bandwidth,omitempty"`
}

// Bounds of the figures of EndCosts, wide of any hardware: times in between do
// not vanish in a step's clock, and sums of them stay finite.
const (
	leastTime units.Seconds        = 1e-12
	mostTime  units.Seconds        = 1e3
	leastRate units.BytesPerSecond = 1
	mostRate  units.BytesPerSecond = 1e18
)

func plausibleTime(s units.Seconds) bool        { return s >= leastTime && s <= mostTime }
func plausibleRate(r units.BytesPerSecond) bool { return r >= leastRate && r <= mostRate }

// check reports figures that cannot be, on a link of that bandwidth and latency.
// Zero is an absent figure.
func (e *EndCosts) check(bandwidth units.BytesPerSecond, latency units.Seconds) error {
	if *e == (EndCosts{}) {
		return nil
	}
	if e.Occupies == "" {
		return fmt.Errorf("delivery, receive and receive_bandwidth mean nothing without occupies")
	}
	if e.Occupies != Sender {
		return fmt.Errorf("occupies is %q, want %q or nothing", e.Occupies, Sender)
	}
	for _, x := range []struct {
		key string
		s   units.Seconds
	}{{"latency", latency}, {"delivery", e.Delivery}, {"receive", e.Receive}} {
		if x.s != 0 && !plausibleTime(x.s) {
			return fmt.Errorf("%s is %v, want %v to %v", x.key, x.s, leastTime, mostTime)
		}
	}
	for _, x := range []struct {
		key string
		r   units.BytesPerSecond
	}{{"bandwidth", bandwidth}, {"receive_bandwidth", e.ReceiveBandwidth}} {
		if x.r != 0 && !plausibleRate(x.r) {
			return fmt.Errorf("%s is %v, want %v to %v", x.key, x.r, leastRate, mostRate)
		}
	}
	return nil
}

// hash adds what is present.
func (e *EndCosts) hash(d digest) {
	if *e == (EndCosts{}) {
		return
	}
	d.text("occupies " + e.Occupies)
	for _, x := range []float64{float64(e.Delivery), float64(e.Receive), float64(e.ReceiveBandwidth)} {
		d.number(x)
	}
}

// endCostKeys are the keys of EndCosts in a cable or a link.
var endCostKeys = []string{"occupies", "delivery", "receive", "receive_bandwidth"}

func (f *jsonFile) endCosts(v *jsonValue, bandwidth units.BytesPerSecond, latency units.Seconds) (e EndCosts) {
	if x := v.member("occupies"); x != nil {
		if e.Occupies = f.text(x); e.Occupies != Sender {
			f.fail(x, "is %q, want %q", e.Occupies, Sender)
		}
	}
	e.Delivery = positive(f, v.member("delivery"), units.ParseSeconds)
	e.Receive = positive(f, v.member("receive"), units.ParseSeconds)
	e.ReceiveBandwidth = positive(f, v.member("receive_bandwidth"), units.ParseBytesPerSecond)
	if err := e.check(bandwidth, latency); err != nil {
		f.fail(v, "%w", err)
	}
	return e
}

// positive reads a quantity above zero; a nil v is zero, for an absent one.
func positive[Q ~float64](f *jsonFile, v *jsonValue, parse func(string) (Q, error)) Q {
	q := quantity(f, v, parse)
	if v != nil && !(q > 0) {
		f.fail(v, "is %s, want above zero", v.describe())
	}
	return q
}

// OccupiesSender reports whether copies occupy the sender in m, which they do on
// all links or on none.
func (m *Machine) OccupiesSender() bool { return len(m.Links) > 0 && m.Links[0].Occupies == Sender }

// EndCosts returns what transfers over the route from src to dst cost at its
// ends: the sum of its links' times and the lowest of their receive bandwidths.
func (m *Machine) EndCosts(src, dst int) (e EndCosts) {
	for _, l := range m.Route(src, dst) {
		x := &m.Links[l].EndCosts
		e.Occupies = x.Occupies
		e.Delivery += x.Delivery
		e.Receive += x.Receive
		if b := x.ReceiveBandwidth; b > 0 && (e.ReceiveBandwidth == 0 || b < e.ReceiveBandwidth) {
			e.ReceiveBandwidth = b
		}
	}
	return e
}
