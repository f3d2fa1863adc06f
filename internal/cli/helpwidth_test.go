package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestHelpWidth: no line of the help of any command is wider than helpWidth.
func TestHelpWidth(t *testing.T) {
	var visit func(cmd *cobra.Command, path []string)
	visit = func(cmd *cobra.Command, path []string) {
		var out bytes.Buffer
		newConsole(nil, &out, &out).run(t.Context(), append(path, "--help"))
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			if n := len([]rune(line)); n > helpWidth {
				t.Errorf("%s: %d columns: %s", strings.Join(path, " "), n, line)
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub, append(path[:len(path):len(path)], sub.Name()))
		}
	}
	visit((&console{}).root(), nil)
}
