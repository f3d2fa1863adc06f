package methods_test

import (
	"fmt"
	"strings"
	"testing"

	"placer/placer/methods"
)

func TestMethodsAreWhatTheySay(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range methods.Methods() {
		p, err := m.New(methods.Default())
		if err != nil {
			t.Fatal(err)
		}
		if p.Name() != m.Name || p.Kind() != m.Kind || seen[m.Name] {
			t.Errorf("method %q of kind %q makes %q of kind %q", m.Name, m.Kind, p.Name(), p.Kind())
		}
		if m.About == "" || strings.ContainsAny(m.About+m.Source, "\n|") {
			t.Errorf("method %q: about %q, source %q do not go into a table", m.Name, m.About, m.Source)
		}
		seen[m.Name] = true
	}
}

func TestFindNamesTheNearest(t *testing.T) {
	for name, want := range map[string]string{"mets": "metis", "Hefd": "heft", "GO-ones": "GO-one", "local-search": "local"} {
		if _, err := methods.Find(name); err == nil || !strings.Contains(err.Error(), "did you mean "+want) {
			t.Errorf("%q: error %v, want one that names %q", name, err, want)
		}
	}
}

func TestFindFoldsNames(t *testing.T) {
	for name, want := range map[string]string{"Heft": "heft", "go-one": "GO-one", "GOONE": "GO-one", "finetuned": "fine-tuned", "brkga": "BRKGA", "Regal": "REGAL"} {
		if m, err := methods.Find(name); err != nil || m.Name != want {
			t.Errorf("%q gives %q, %v, want %q", name, m.Name, err, want)
		}
	}
}

func Example() {
	m, err := methods.Find("metis")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s (%s): %s; %s; needs %s\n", m.Name, m.Kind, m.About, m.Source, m.Needs)
	// Output:
	// metis (baseline): parts of equal compute, least communication across the cut; Karypis and Kumar 1998; GO: METIS; needs gpmetis
}
