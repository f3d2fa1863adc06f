package report

import (
	"fmt"
	"strings"
)

// mark is a point of a plot under its letter.
type mark struct {
	key  string
	x, y float64
}

// Size of a plot in characters, without its axes.
const (
	plotWidth  = 56
	plotHeight = 10
)

// plot draws marks, both axes linear from the least to the largest value; of marks in
// one place the first shows, and the others stand behind it as far as there is room.
func plot(pg *page, ps []mark, xName, yName string, xs, ys func(float64) string) {
	lowX, highX, lowY, highY := ps[0].x, ps[0].x, ps[0].y, ps[0].y
	for _, p := range ps {
		lowX, highX, lowY, highY = min(lowX, p.x), max(highX, p.x), min(lowY, p.y), max(highY, p.y)
	}
	at := func(x, low, high float64, cells int) int {
		if high == low {
			return 0
		}
		return int((x - low) / (high - low) * float64(cells-1))
	}
	grid := make([][]byte, plotHeight)
	for r := range grid {
		grid[r] = []byte(strings.Repeat(" ", plotWidth))
	}
	for _, p := range ps {
		r, c := plotHeight-1-at(p.y, lowY, highY, plotHeight), at(p.x, lowX, highX, plotWidth)
		for c < plotWidth-1 && grid[r][c] != ' ' {
			c++
		}
		grid[r][c] = p.key[0]
	}
	top, bottom := ys(highY), ys(lowY)
	margin := max(len(top), len(bottom), len(yName))
	for r := range grid {
		label := ""
		switch r {
		case 0:
			label = top
		case plotHeight / 2:
			label = yName
		case plotHeight - 1:
			label = bottom
		}
		pg.printf("%s\n", strings.TrimRight(fmt.Sprintf("%*s |%s", margin, label, grid[r]), " "))
	}
	pg.printf("%*s +%s\n", margin, "", strings.Repeat("-", plotWidth))
	left, right := xs(lowX), xs(highX)
	pad := max(1, plotWidth-len(left)-len(right)-len(xName))
	pg.printf("%*s  %s%s%s%s%s\n", margin, "", left, strings.Repeat(" ", pad/2), xName, strings.Repeat(" ", pad-pad/2), right)
}
