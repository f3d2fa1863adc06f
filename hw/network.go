package hw

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"placer/internal/words"
	"placer/units"
)

// Network joins hosts: each has so many network cards (NICs) of a rate in each direction, to one
// switch without blocking.
type Network struct {
	NICs int
	Rate units.BytesPerSecond // of each, on the wire
}

// maxNICs bounds those of a host.
const maxNICs = 64

// infiniband are the data rates of four lanes, by their names in the InfiniBand Trade
// Association's roadmap, in bits a second.
var infiniband = map[string]float64{"fdr": 56e9, "edr": 100e9, "hdr": 200e9, "ndr": 400e9, "xdr": 800e9}

// ParseNetwork reads "8x400Gb/s", "100 Gb/s" (one NIC a host), "2x25GB/s" or "8xndr".
func ParseNetwork(s string) (Network, error) {
	bad := fmt.Errorf("network %q: want the NICs of a host and the rate of each, as 8x400Gb/s, 100Gb/s or 8xndr", s)
	text, n := strings.ToLower(strings.ReplaceAll(s, " ", "")), 1
	plain := strings.ReplaceAll(s, " ", "")
	if count, rest, ok := strings.Cut(text, "x"); ok && count != "" {
		var err error
		if n, err = strconv.Atoi(count); err != nil || n < 1 || n > maxNICs {
			return Network{}, bad
		}
		text, plain = rest, plain[len(count)+1:]
	}
	if bits, ok := infiniband[text]; ok {
		return Network{n, units.BytesPerSecond(bits / 8)}, nil
	}
	at := strings.LastIndexAny(plain, "0123456789.") + 1
	x, err := strconv.ParseFloat(plain[:at], 64)
	switch plain[at:] {
	case "Gb/s", "Gbps", "Gbit/s":
		x /= 8
	case "GB/s":
	default:
		err = bad
	}
	if err != nil || !(x > 0) || math.IsInf(x, 0) || x > 1e6 {
		return Network{}, bad
	}
	return Network{n, units.BytesPerSecond(x * 1e9)}, nil
}

func (n Network) String() string {
	return fmt.Sprintf("%d x %g Gb/s", n.NICs, 8*float64(n.Rate)/1e9)
}

// join adds the cables of host h, whose cards are given, to the network: of each card, where
// no two share a NIC; else of groups of cards, each to its NIC.
func (n Network) join(x *templateText, cards []Card, h int) error {
	k, first := len(cards), h*len(cards)
	if n.NICs < 1 || n.NICs%k != 0 && k%n.NICs != 0 {
		return fmt.Errorf("%s a host cannot be shared out evenly among its %s", words.Count(n.NICs, "NIC", "NICs"), words.Count(k, "GPU", "GPUs"))
	}
	slowest := cards[0]
	for _, c := range cards {
		if c.PCIe.Rate() < slowest.PCIe.Rate() {
			slowest = c
		}
	}
	const assumed = "%.3g GB/s on the wire; %.1f of it achieved, latency: assumptions"
	if n.NICs%k == 0 {
		each := n.Rate * units.BytesPerSecond(n.NICs/k)
		rate, source := networkShare*each, fmt.Sprintf("%v a host, %g Gb/s a GPU, "+assumed, n, 8*float64(each)/1e9, float64(each)/1e9, networkShare)
		if slot := slowest.achieved(); slot < rate {
			rate, source = slot, fmt.Sprintf("%v a host, through the GPU's slot: %s latency: assumptions", n, slowest.overPCIe())
		}
		x.cable(gpuNames(first, first+k), "network", cableText{Bandwidth: gigabytes(rate), Latency: microseconds(networkLatency), Medium: Between, Source: source})
		return nil
	}
	for j := range n.NICs {
		nic, share := fmt.Sprintf("nic%d", h*n.NICs+j), k/n.NICs
		x.cable(gpuNames(first+j*share, first+(j+1)*share), nic, cableText{Bandwidth: gigabytes(slowest.achieved()), Latency: microseconds(pcieLatency / 2), Medium: PCIe, Source: slowest.overPCIe() + " latency: assumptions"})
		x.cable(nic, "network", cableText{Bandwidth: gigabytes(networkShare * n.Rate), Latency: microseconds(networkLatency - pcieLatency/2), Medium: Between, Source: fmt.Sprintf("%v a host, %d GPUs share one, "+assumed, n, share, float64(n.Rate)/1e9, networkShare)})
	}
	return nil
}
