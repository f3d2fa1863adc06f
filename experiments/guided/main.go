// Command guided anneals by chance and under a network of moves that did not see the
// family, in turns, within equal processor time on one core: the rows of table 2, placement
// alone or all tasks, and problems drawn as those are that networks learn from. A row of
// runs.tsv is one such search; what has a row is left out. It prints the table.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"placer/internal/fsx"
	"placer/plan"
)

func main() {
	var e experiment
	seconds := flag.String("seconds", "1,5", "processor time of a search")
	tasks := flag.String("tasks", plan.Place.String(), "what is decided: place, or "+plan.AllTasks.String())
	rows := flag.String("rows", "", "graphs, separated by commas; all rows of table 2 and the drawn ones without it")
	flag.IntVar(&e.seeds, "seeds", 6, "seeds")
	flag.IntVar(&e.drawn, "drawn", 0, "drawn problems beside the rows of table 2")
	flag.IntVar(&e.jobs, "jobs", 1, "pairs of searches that run at once, a process and a core each")
	flag.StringVar(&e.networks, "networks", "", "folder of the networks (default: networks beside the table)")
	flag.StringVar(&e.search, "search", annealing, "what searches: "+annealing+" or "+portfolio)
	flag.StringVar(&e.out, "o", "experiments/guided", "folder of runs.tsv and table.md")
	one := flag.String("pair", "", "run graph:seconds:seed:chance:guided, or one way of them, and print the rows")
	flag.Parse()
	e.rows = *rows
	err := e.check(flag.Args())
	if err == nil {
		e.tasks, err = plan.ParseTasks(*tasks)
	}
	if err == nil {
		e.budgets = strings.Split(*seconds, ",")
		if e.networks == "" {
			e.networks = filepath.Join(e.out, "networks")
		}
		if *one != "" {
			err = e.pair(*one)
		} else {
			err = e.run()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "guided:", err)
		os.Exit(1)
	}
}

// experiment is what is compared.
type experiment struct {
	tasks         plan.Tasks
	budgets       []string // processor seconds
	seeds         int
	rows          string // of table 2 or drawn; empty: all
	drawn, jobs   int
	search        string
	out, networks string
}

// check returns an error for what would be run as something else, or not at all: arguments that
// are no flags, ways of searching and graphs that do not exist.
func (e *experiment) check(left []string) error {
	if len(left) > 0 {
		return fmt.Errorf("%q: want flags alone", left)
	}
	if e.search != annealing && e.search != portfolio {
		return fmt.Errorf("-search %s: want %s or %s", e.search, annealing, portfolio)
	}
	_, err := e.graphs()
	return err
}

// run runs what has no rows yet, each pair in a process of its own, and writes the table.
func (e *experiment) run() error {
	path := filepath.Join(e.out, "runs.tsv")
	runs, err := read(path)
	if err != nil {
		return err
	}
	done := map[string]bool{}
	for k := range runs {
		done[runs[k].key()] = true
	}
	graphs, err := e.graphs()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(e.out, 0o755); err != nil {
		return err
	}
	var pairs []string
	for seed := 1; seed <= e.seeds; seed++ {
		for _, of := range e.budgets {
			budget, err := strconv.ParseFloat(of, 64)
			if err != nil {
				return err
			}
			for _, g := range graphs {
				key, ways := fmt.Sprintf("%s\t%g\t%d\t", g, budget, seed), ""
				for _, how := range []string{chance, guided} {
					if !done[key+how] {
						ways += ":" + how
					}
				}
				if ways != "" {
					pairs = append(pairs, fmt.Sprintf("%s:%g:%d%s", g, budget, seed, ways))
				}
			}
		}
	}
	if err := e.start(pairs, path); err != nil {
		return err
	}
	if runs, err = read(path); err != nil {
		return err
	}
	table := summary(runs)
	fmt.Print(table)
	return fsx.WriteFile(filepath.Join(e.out, "table.md"), func(w io.Writer) error {
		_, err := io.WriteString(w, table)
		return err
	})
}

// start runs pairs, so many at once as there are jobs, and adds their rows to the file at
// path once a pair has ended.
func (e *experiment) start(pairs []string, path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	todo := make(chan string)
	var wait sync.WaitGroup
	var mu sync.Mutex // guards f and first
	var first error
	for range max(1, e.jobs) {
		wait.Go(func() {
			for pair := range todo {
				c := exec.Command(self, "-pair", pair, "-tasks", e.tasks.String(), "-search", e.search, "-networks", e.networks)
				c.Env = append(os.Environ(), "GOMAXPROCS=1")
				c.Stderr = os.Stderr
				rows, err := c.Output()
				mu.Lock()
				if err == nil {
					_, err = f.Write(rows)
				}
				if err != nil && first == nil {
					first = fmt.Errorf("%s: %w", pair, err)
				}
				mu.Unlock()
			}
		})
	}
	for _, pair := range pairs {
		mu.Lock()
		failed := first != nil
		mu.Unlock()
		if failed {
			break
		}
		todo <- pair
	}
	close(todo)
	wait.Wait()
	return first
}

// pair runs the searches of a pair, in turns, and prints their rows.
func (e *experiment) pair(of string) error {
	var r run
	parts := strings.Split(of, ":")
	if _, err := fmt.Sscan(strings.Join(parts, " "), &r.graph, &r.budget, &r.seed); err != nil {
		return fmt.Errorf("pair %q: %w", of, err)
	}
	var rows strings.Builder
	c, err := e.caseOf(r.graph)
	if err != nil {
		return err
	}
	for _, r.how = range parts[3:] {
		runtime.GC()
		if err := r.search(context.Background(), e, c); err != nil {
			return err
		}
		rows.WriteString(r.line())
	}
	_, err = os.Stdout.WriteString(rows.String())
	return err
}

// graphs returns the names of what is searched.
func (e *experiment) graphs() (all []string, err error) {
	rows, err := table2()
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		all = append(all, r.graph)
	}
	for k := range e.drawn {
		all = append(all, fmt.Sprintf("%s%d", drawnPrefix, k))
	}
	if e.rows == "" {
		return all, nil
	}
	asked := strings.Split(e.rows, ",")
	for _, name := range asked {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("-rows %q: want some of %s", name, strings.Join(all, ", "))
		}
	}
	return slices.DeleteFunc(all, func(g string) bool { return !slices.Contains(asked, g) }), nil
}
