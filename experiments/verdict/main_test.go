package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestRecorded: the table of docs/answers.md is what the documents give.
func TestRecorded(t *testing.T) {
	var got bytes.Buffer
	if err := run(&got, "."); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/answers.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), got.String()) {
		t.Errorf("docs/answers.md does not have this table:\n%s", got.String())
	}
}
