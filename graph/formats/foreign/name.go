package foreign

import (
	"path/filepath"
	"strings"
)

// GraphName returns the name of a graph that is read from the file of that
// name: without folder and endings.
func GraphName(file string) string {
	base := filepath.Base(file)
	for _, ending := range []string{".json", ".txt", ".graph"} {
		base = strings.TrimSuffix(base, ending)
	}
	if base == "" || base == "." || base == string(filepath.Separator) {
		return "graph"
	}
	return base
}
