package partition

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// program is one run of a program that partitions graphs, as a process of its own in
// a folder of its own.
type program struct {
	path   string
	args   []string
	env    []string          // beside this process's own
	files  map[string][]byte // that it reads, by name
	result string            // the file that it writes
}

// run returns the words of what the program wrote; name is what errors call it.
func (x program) run(ctx context.Context, name string) ([]string, error) {
	dir, err := os.MkdirTemp("", "placer-"+name+"-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for f, data := range x.files {
		if err := os.WriteFile(filepath.Join(dir, f), data, 0o600); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, x.path, x.args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), x.env...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		text := strings.TrimSpace(said.String())
		return nil, fmt.Errorf("%s: %w: %s", name, err, text[strings.LastIndexByte(text, '\n')+1:])
	}
	text, err := os.ReadFile(filepath.Join(dir, x.result))
	if err != nil {
		return nil, fmt.Errorf("%s wrote no result: %w", name, err)
	}
	return strings.Fields(string(text)), nil
}
