package web

import (
	"fmt"

	"placer/units"
)

// heat is the heat map of a placement: for each group the shares of its time that
// devices run.
type heat struct {
	Caption, Word string
	Devices       []string
	Rows          []heatRow
}

type heatRow struct {
	Name, Class, Time string
	Shares            []heatCell // [D]
}

// heatCell is a share of a row's time; Percent is its strength as a colour.
type heatCell struct {
	Percent int
	Text    string
}

// newHeat returns the heat map of x.
func newHeat(x *Plan, by *groups) heat {
	h := heat{Caption: fmt.Sprintf("share of each %s's computing time by device", by.word), Word: by.word}
	if x.Title != "" {
		h.Caption = x.Title + ": " + h.Caption
	}
	devices := x.Machine.NumDevices()
	for d := range devices {
		h.Devices = append(h.Devices, x.Machine.Devices[d].Name)
	}
	time := make([]units.Seconds, len(by.names)*devices)
	for _, s := range x.Result.Trace.Ops {
		time[int(by.of[s.Op])*devices+s.Device] += s.End - s.Start
	}
	for i, name := range by.names {
		row := time[i*devices : (i+1)*devices]
		sum := units.Seconds(0)
		for _, t := range row {
			sum += t
		}
		r := heatRow{Name: name, Class: fmt.Sprintf("f%d", by.colour(i)), Time: sum.String()}
		for _, t := range row {
			c := heatCell{}
			if sum > 0 && t > 0 {
				share := float64(t / sum)
				c = heatCell{int(100*share + 0.5), fmt.Sprintf("%.1f%%", 100*share)}
			}
			r.Shares = append(r.Shares, c)
		}
		h.Rows = append(h.Rows, r)
	}
	return h
}
