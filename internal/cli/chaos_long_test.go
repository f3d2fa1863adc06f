//go:build linux && long && !light

package cli

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

var chaosFor = flag.Duration("chaos", 20*time.Second, "how long workers, hub and searches are disturbed")

// chaos is a hub of its own, workers at it, some by a slow link, and what is done to them.
type chaos struct {
	t       *testing.T
	dir, at string // folder of the hub, its address
	slow    string // address of the slow link to it
	ended   chan struct{}

	mu      sync.Mutex
	hub     *exec.Cmd
	workers [8]*exec.Cmd
	memory  [steady][]int // KiB of resident memory of the workers that are never killed

	kills, pauses, restarts, searchKills atomic.Int64
}

// steady workers are paused but never killed: their memory is watched.
const steady = 2

func newChaos(t *testing.T) *chaos {
	c := &chaos{t: t, dir: t.TempDir(), at: freePort(t), ended: make(chan struct{})}
	c.slow = c.slowLink()
	c.startHub()
	for k := range c.workers {
		c.startWorker(k)
	}
	t.Cleanup(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.hub.Process.Kill()
		for _, w := range c.workers {
			w.Process.Kill()
		}
	})
	return c
}

// child starts the test binary with the environment variable set. Its output is of no
// interest.
func (c *chaos) child(variable string, args ...string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), variable, "GOMAXPROCS=1")
	cmd.Dir = c.dir
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	go cmd.Wait()
	return cmd
}

func (c *chaos) startHub() { c.hub = c.child(asHub+"="+c.at, filepath.Join(c.dir, "hub")) }

func (c *chaos) startWorker(k int) {
	at := c.at
	if k%2 == 1 {
		at = c.slow
	}
	c.workers[k] = c.child(asProgram+"=1", "worker", "-q", "--hub", "nats://"+at, "--slots", "1", "--name", fmt.Sprint("w", k))
}

// slowLink returns an address whose bytes come to the hub, and back, 20 ms later and at
// about 1 MB/s.
func (c *chaos) slowLink() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { l.Close() })
	carry := func(to, from net.Conn) {
		defer to.Close()
		defer from.Close()
		b := make([]byte, 16<<10)
		for {
			n, err := from.Read(b)
			time.Sleep(20*time.Millisecond + time.Duration(n)*time.Microsecond)
			if _, wrong := to.Write(b[:n]); err != nil || wrong != nil {
				return
			}
		}
	}
	go func() {
		for {
			worker, err := l.Accept()
			if err != nil {
				return
			}
			hub, err := net.Dial("tcp", c.at)
			if err != nil {
				worker.Close()
				continue
			}
			go carry(hub, worker)
			go carry(worker, hub)
		}
	}()
	return l.Addr().String()
}

// disturb does one thing after another to workers and hub.
func (c *chaos) disturb(r *rand.Rand) {
	wait := func(most time.Duration) {
		select {
		case <-c.ended:
		case <-time.After(time.Duration(r.Int64N(int64(most)))):
		}
	}
	for wait(2 * time.Second); ; wait(2 * time.Second) {
		select {
		case <-c.ended:
			return
		default:
		}
		k := r.IntN(len(c.workers))
		c.mu.Lock()
		w, hub := c.workers[k], c.hub
		c.mu.Unlock()
		switch n := r.IntN(10); {
		case n < 5 && k >= steady:
			w.Process.Kill()
			wait(time.Second)
			c.mu.Lock()
			c.startWorker(k)
			c.mu.Unlock()
			c.kills.Add(1)
		case n < 9: // some for longer than a job may go without a sign of life
			w.Process.Signal(syscall.SIGSTOP)
			c.pauses.Add(1)
			time.AfterFunc(time.Duration(r.Int64N(int64(9*time.Second))), func() { w.Process.Signal(syscall.SIGCONT) })
		default:
			hub.Process.Kill()
			wait(3 * time.Second)
			c.mu.Lock()
			c.startHub()
			c.mu.Unlock()
			c.restarts.Add(1)
		}
	}
}

// watch notes the memory of the steady workers.
func (c *chaos) watch() {
	for tick := time.NewTicker(2 * time.Second); ; {
		select {
		case <-c.ended:
			return
		case <-tick.C:
		}
		for k := range steady {
			if kib := resident(c.workers[k].Process.Pid); kib > 0 {
				c.memory[k] = append(c.memory[k], kib)
			}
		}
	}
}

// resident returns the resident memory of a process in KiB, 0 where it is not known.
func resident(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	if m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(text); m != nil {
		kib, _ := strconv.Atoi(string(m[1]))
		return kib
	}
	return 0
}

// controlled is what the searches of one controller came to.
type controlled struct{ searches, remote, local, unheard int }

// control runs one search after another at the hub, kills some and takes them up again,
// until end.
func (c *chaos) control(t *testing.T, name string, r *rand.Rand, want map[int][]byte, end time.Time) (sum controlled) {
	config := hubFile(t, "nats://"+c.at, 0)
	for n := 0; time.Now().Before(end) && !t.Failed(); n++ {
		dir, seed := t.TempDir(), 1+n%len(want)
		args := chaosArgs("run", seed, "--config", config)
		for tries := 0; ; tries++ {
			cmd, stdout, stderr := process(t, dir, args...)
			var killed atomic.Bool
			if tries < 3 && r.IntN(4) == 0 {
				time.AfterFunc(time.Duration(r.Int64N(int64(3*time.Second))), func() { killed.Store(true); cmd.Process.Kill() })
			}
			err := cmd.Wait()
			if _, there := os.Stat(filepath.Join(dir, "run", "config.json")); there == nil {
				args = []string{"search", "--resume", "run", "--workers", "1", "--config", config}
			}
			if err != nil {
				says := stderr.String()
				if exitOf(err) == -1 && killed.Load() {
					c.searchKills.Add(1)
				} else if !strings.Contains(says, "hub nats://") && !strings.Contains(says, "hub:") {
					t.Errorf("%s, seed %d: %v\n%s", name, seed, err, says)
					return sum
				}
				continue // the hub was away, or it was killed
			}
			if !bytes.Equal(read(t, dir, "run/plan.json"), want[seed]) {
				t.Errorf("%s, seed %d: another plan than without workers\n%s", name, seed, stderr)
			}
			if strings.Contains(stderr.String(), "is complete") {
				break // killed after its result
			}
			remote, local := counted(t, stderr.String())
			if tries == 0 { // a search that goes on has not made what had ended before
				if e := evaluations(t, stdout.String()); remote+local != e {
					t.Errorf("%s, seed %d: %d samples by workers and %d here, the search counted %d", name, seed, remote, local, e)
				}
			}
			sum.searches++
			sum.remote += remote
			sum.local += local
			if m := regexp.MustCompile(`; (\d+) answers came twice`).FindStringSubmatch(stderr.String()); m != nil {
				k, _ := strconv.Atoi(m[1])
				sum.unheard += k
			}
			break
		}
	}
	return sum
}

func chaosArgs(out string, seed int, more ...string) []string {
	return helpedArgs(out, append([]string{"--seed", fmt.Sprint(seed)}, more...)...)
}

// TestChaos: two searches at a time, eight workers, a hub of its own. Workers are killed and
// paused, half of them have slow links, the hub is killed and comes back, searches are killed
// and resumed. Every plan is the one of a search alone, every sample is counted once, and the
// memory of workers that live through it does not grow.
func TestChaos(t *testing.T) {
	want := map[int][]byte{}
	for seed := 1; seed <= 3; seed++ {
		dir := t.TempDir()
		if code := Main(chaosArgs(filepath.Join(dir, "alone"), seed, "-q"), nil, io.Discard, io.Discard); code != 0 {
			t.Fatal(code)
		}
		want[seed] = read(t, dir, "alone/plan.json")
	}
	c := newChaos(t)
	begin := time.Now()
	end := begin.Add(*chaosFor)
	var beside, controllers sync.WaitGroup
	beside.Go(func() { c.disturb(rand.New(rand.NewPCG(*faultSeed, 100))) })
	beside.Go(c.watch)
	var sums [2]controlled
	for k := range sums {
		controllers.Go(func() {
			sums[k] = c.control(t, fmt.Sprint("controller ", k), rand.New(rand.NewPCG(*faultSeed, uint64(k))), want, end)
		})
	}
	controllers.Wait()
	close(c.ended)
	beside.Wait()
	for k, s := range sums {
		t.Logf("controller %d: %d searches, %d samples by workers, %d here, %d answers twice or too late", k, s.searches, s.remote, s.local, s.unheard)
		if s.searches == 0 {
			t.Errorf("controller %d: no search ended", k)
		}
	}
	if sums[0].remote+sums[1].remote == 0 {
		t.Error("workers did nothing")
	}
	t.Logf("%v: %d workers killed, %d paused, hub killed %d times, searches killed %d times", time.Since(begin).Round(time.Second), c.kills.Load(), c.pauses.Load(), c.restarts.Load(), c.searchKills.Load())
	for k, m := range c.memory {
		if len(m) < 12 {
			continue
		}
		first, last := most(m[len(m)/4:len(m)/2]), most(m[len(m)*3/4:])
		t.Logf("worker %d: %d MiB at most in the second quarter of the time, %d MiB in the last", k, first>>10, last>>10)
		if last > first*3/2+16<<10 {
			t.Errorf("worker %d has grown from %d to %d MiB", k, first>>10, last>>10)
		}
	}
}

func most(a []int) (m int) {
	for _, x := range a {
		m = max(m, x)
	}
	return m
}
