package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// docsText returns the text of the files of docs.
func docsText(t *testing.T) string {
	t.Helper()
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no docs: %v", err)
	}
	var all strings.Builder
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// Every command and every flag is in docs, and cli.md names no flag that there is not.
func TestFlagsAreDocumented(t *testing.T) {
	all := docsText(t)
	cli, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	flag := regexp.MustCompile(`--([a-z][a-z-]*[a-z])`)
	written := map[string]bool{}
	for _, m := range flag.FindAllStringSubmatch(all, -1) {
		written[m[1]] = true
	}
	known := map[string]bool{"help": true}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		name := strings.TrimPrefix(cmd.CommandPath(), "placer ")
		if !strings.Contains(string(cli), "`"+name) && cmd.HasParent() && !cmd.HasSubCommands() {
			t.Errorf("docs/cli.md lacks the command %q", name)
		}
		see := func(f *pflag.Flag) {
			known[f.Name] = true
			if !written[f.Name] {
				t.Errorf("docs lack --%s of %q", f.Name, cmd.CommandPath())
			}
		}
		cmd.LocalNonPersistentFlags().VisitAll(see)
		cmd.PersistentFlags().VisitAll(see)
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit((&console{}).root())
	for _, m := range flag.FindAllStringSubmatch(string(cli), -1) {
		if !known[m[1]] {
			t.Errorf("docs/cli.md has --%s, which no command has", m[1])
		}
	}
}

// Every format of a document that a program writes is in formats.md.
func TestFormatsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	format := regexp.MustCompile(`"(placer [a-z -]+ [0-9]+)"`)
	err = filepath.WalkDir("../..", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range format.FindAllStringSubmatch(string(source), -1) {
			if !strings.Contains(string(text), "`"+m[1]+"`") {
				t.Errorf("docs/formats.md lacks %q of %s", m[1], path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Every command line in README.md and in docs parses: the command exists and has
// the flags.
func TestCommandLinesParse(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^    (?:placer|go run \./cmd/placer) (.*)$`)
	lines := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range line.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\\\n", " "), -1) {
			command, _, _ := strings.Cut(m[1], " #")
			command, _, _ = strings.Cut(command, " >")
			if command = strings.TrimSuffix(command, " &"); command == "COMMAND [flags]" {
				continue
			}
			lines++
			cmd, rest, err := (&console{}).root().Find(fields(command))
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil && len(cmd.Flags().Args()) > 0 && cmd.Args != nil {
				err = cmd.Args(cmd, cmd.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: %q: %v", page, m[1], err)
			}
		}
	}
	if lines < 30 {
		t.Errorf("found %d command lines: the pages have changed their form", lines)
	}
}

// fields splits a command line at spaces outside of quotes.
func fields(line string) []string {
	quoted := false
	return strings.FieldsFunc(strings.ReplaceAll(line, `"`, `'`), func(r rune) bool {
		if r == '\'' {
			quoted = !quoted
			return true
		}
		return r == ' ' && !quoted
	})
}
