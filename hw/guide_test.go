package hw_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"placer/hw"
)

// TestGuide: the machines of docs/adding-a-machine.md are read, and the routes of that of two
// hosts are as the page says.
func TestGuide(t *testing.T) {
	const page = "../docs/adding-a-machine.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]*hw.Machine{}
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		m, err := hw.Read(strings.NewReader(block[1]))
		if err != nil {
			t.Fatalf("%s: %v", page, err)
		}
		seen[m.Name] = m
	}
	if seen["l4"] == nil || seen["two-hosts"] == nil {
		t.Fatalf("%s has %d machines, want l4 and two-hosts", page, len(seen))
	}
	m := seen["two-hosts"]
	for _, c := range []struct {
		from, to int
		through  string
	}{{0, 7, "nvswitch0"}, {8, 15, "nvswitch1"}, {0, 8, "infiniband"}, {7, 15, "infiniband"}} {
		route := m.Route(c.from, c.to)
		if len(route) != 2 || !strings.HasSuffix(m.Links[route[0]].Name, ">"+c.through) {
			t.Errorf("from GPU %d to %d: a route of %d links, the first %s; want one through %s", c.from, c.to, len(route), m.Links[route[0]].Name, c.through)
		}
	}
}
