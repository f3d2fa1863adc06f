package explain

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"placer/units"
)

// Time is a time in picoseconds.
type Time int64

// ps rounds an instant to picoseconds.
func ps(s units.Seconds) Time { return Time(math.Round(float64(s) * 1e12)) }

// Seconds returns t in seconds.
func (t Time) Seconds() float64 { return float64(t) / 1e12 }

// digits is how many digits a step is printed with.
const digits = 6

// Scale prints times of one page in one unit with one number of decimals.
type Scale struct {
	Unit     string // "s", "ms" or "us"
	per      Time   // picoseconds of the unit
	decimals int
}

// ScaleOf returns the scale in which total has six digits.
func ScaleOf(total Time) Scale {
	s := Scale{"s", 1e12, 0}
	for _, x := range []Scale{{"ms", 1e9, 0}, {"us", 1e6, 0}} {
		if total < s.per {
			s = x
		}
	}
	for whole := len(fmt.Sprint(total / s.per)); s.decimals < digits-whole && s.tick() > 1; {
		s.decimals++
	}
	return s
}

// tick is the least time that s prints.
func (s Scale) tick() Time {
	t := s.per
	for range s.decimals {
		t /= 10
	}
	return t
}

// Format prints t, rounded to a tick.
func (s Scale) Format(t Time) string { return s.print(divide(t, s.tick())) }

// print prints a number of ticks.
func (s Scale) print(ticks Time) string {
	sign := ""
	if ticks < 0 {
		sign, ticks = "-", -ticks
	}
	text := fmt.Sprint(ticks)
	if s.decimals == 0 {
		return sign + text
	}
	if n := s.decimals + 1 - len(text); n > 0 {
		text = strings.Repeat("0", n) + text
	}
	return sign + text[:len(text)-s.decimals] + "." + text[len(text)-s.decimals:]
}

// divide rounds a/b to the nearest whole number, halves upwards.
func divide(a, b Time) Time {
	q := a / b
	r := a - q*b
	if r < 0 {
		q, r = q-1, r+b
	}
	if 2*r >= b {
		q++
	}
	return q
}

// FormatParts prints parts so that what is printed sums to the print of their sum: each
// is rounded down to a tick, and the ticks that are left go to those with the largest
// remainders, the first of equals.
func (s Scale) FormatParts(parts []Time) []string {
	text := make([]string, len(parts))
	for k, n := range s.ticks(parts) {
		text[k] = s.print(n)
	}
	return text
}

// ticks returns parts in ticks, as FormatParts says.
func (s Scale) ticks(parts []Time) []Time {
	tick := s.tick()
	var sum, given Time
	ticks, rest, order := make([]Time, len(parts)), make([]Time, len(parts)), make([]int, len(parts))
	for k, p := range parts {
		sum += p
		q := p / tick
		if p < 0 && q*tick != p {
			q--
		}
		ticks[k], rest[k], order[k] = q, p-q*tick, k
		given += q
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rest[b], rest[a]) })
	for k := range divide(sum, tick) - given {
		ticks[order[k]]++
	}
	return ticks
}

// SumParts prints the sums of n parts each, in ticks as FormatParts gives them to the
// single parts.
func (s Scale) SumParts(parts []Time, n int) []string {
	ticks := s.ticks(parts)
	var sums []string
	for k := 0; k < len(ticks); k += n {
		var sum Time
		for _, t := range ticks[k : k+n] {
			sum += t
		}
		sums = append(sums, s.print(sum))
	}
	return sums
}

// Rest prints the sum of all parts but the first, in ticks as FormatParts gives them.
func (s Scale) Rest(parts []Time) string {
	var sum Time
	for _, t := range s.ticks(parts)[1:] {
		sum += t
	}
	return s.print(sum)
}
