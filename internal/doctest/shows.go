package doctest

import (
	"os"
	"strings"
	"testing"
)

// Shows fails unless the first Go block of the document page shows the file source from
// the line that begins with from up to its first test, and imports nothing else.
func Shows(t testing.TB, page, source, from string) {
	t.Helper()
	shown, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(shown), "```go\n")
	block, _, _ = strings.Cut(block, "```\n")
	_, code, _ := strings.Cut(string(file), from)
	code, _, _ = strings.Cut(code, "\n// Test")
	imports, body, ok := strings.Cut(block, from)
	if !ok || strings.TrimSpace(body) != strings.TrimSpace(code) {
		t.Errorf("%s does not show the code of %s, but\n%s", page, source, body)
	}
	for line := range strings.Lines(imports) {
		if strings.HasPrefix(line, "\t\"") && !strings.Contains(string(file), line) {
			t.Errorf("%s imports %s, which %s does not", page, strings.TrimSpace(line), source)
		}
	}
}
