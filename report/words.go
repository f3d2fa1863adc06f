package report

import "fmt"

// Share prints x, 0.25 for a quarter, in percent. What rounds to nothing has no
// sign.
func Share(x float64) string {
	if s := fmt.Sprintf("%.1f%%", 100*x); s != "-0.0%" {
		return s
	}
	return "0.0%"
}

// devices is n of them in words.
func devices(n int) string {
	if n == 1 {
		return "1 device"
	}
	return fmt.Sprintf("%d devices", n)
}
