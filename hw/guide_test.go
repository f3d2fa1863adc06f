package hw_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"placer/hw"
)

// TestGuide: the machines of docs/adding-a-machine.md are read; that of two hosts is what
// placer machines init writes, and its routes are as the page says.
func TestGuide(t *testing.T) {
	const page = "../docs/adding-a-machine.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	seen, texts := map[string]*hw.Machine{}, map[string]string{}
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		m, err := hw.Read(strings.NewReader(block[1]))
		if err != nil {
			t.Fatalf("%s: %v", page, err)
		}
		seen[m.Name], texts[m.Name] = m, block[1]
	}
	if seen["l4"] == nil || seen["two-hosts"] == nil {
		t.Fatalf("%s has %d machines, want l4 and two-hosts", page, len(seen))
	}
	m := seen["two-hosts"]
	var want bytes.Buffer
	if err := (hw.Template{Name: m.Name, Note: m.Note, Cards: cardsOf(t, "h100", 8), NVLink: true, Hosts: 2, Network: hw.Network{NICs: 8, Rate: 50e9}}).Write(&want); err != nil {
		t.Fatal(err)
	}
	if texts[m.Name] != want.String() {
		t.Errorf("%s: the machine of two hosts is not what is written:\n%s", page, want.String())
	}
	for _, c := range []struct {
		from, to int
		through  string
	}{{0, 7, "nvswitch0"}, {8, 15, "nvswitch1"}, {0, 8, "network"}, {7, 15, "network"}} {
		route := m.Route(c.from, c.to)
		if len(route) != 2 || !strings.HasSuffix(m.Links[route[0]].Name, ">"+c.through) {
			t.Errorf("from GPU %d to %d: a route of %d links, the first %s; want one through %s", c.from, c.to, len(route), m.Links[route[0]].Name, c.through)
		}
	}
}
