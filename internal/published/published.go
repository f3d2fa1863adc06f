// Package published finds, for tests, the data sets of others that are not part of
// the source: graphs, profiles and reference results of papers.
package published

import (
	"os"
	"path/filepath"
	"testing"
)

// Variable names the folder of the data sets in the environment. Where it is not
// set the folder shared/data beside the checkout is taken.
const Variable = "PLACER_DATA"

// Folder returns the path of a data set, by its name. It skips the test where no
// folder of data sets is known, and fails it where one is that lacks this set.
func Folder(t testing.TB, set string) string {
	t.Helper()
	all := os.Getenv(Variable)
	if all == "" {
		all = beside(t)
	}
	path := filepath.Join(all, set)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("the folder of published data lacks %s: %v", set, err)
	}
	return path
}

// beside returns shared/data beside the checkout, whose root has go.mod.
func beside(t testing.TB) string {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			t.Fatal("no go.mod above the test")
		}
		root = filepath.Dir(root)
	}
	all := filepath.Join(filepath.Dir(root), "shared", "data")
	if _, err := os.Stat(all); err != nil {
		t.Skipf("no published data: set %s to the folder of the data sets", Variable)
	}
	return all
}
