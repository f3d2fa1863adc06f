package browser

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// ErrNone says that there is no Chromium.
var ErrNone = errors.New("no chromium found; install Debian's package chromium, or name one in PLACER_CHROMIUM")

// Find returns the path of a Chromium: that in PLACER_CHROMIUM, or the first on the
// search path.
func Find() (string, error) {
	if path := os.Getenv("PLACER_CHROMIUM"); path != "" {
		return path, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", ErrNone
}

// Browser is a running Chromium with one page.
type Browser struct {
	cmd     *exec.Cmd
	profile string
	to      *os.File
	session string
	ended   chan struct{} // the pipe has ended

	mu      sync.Mutex
	next    int
	waiting map[int]chan reply
	events  map[string]chan struct{} // of which the first is awaited
	seen    Seen
}

// Seen is what a page did that a quiet one does not.
type Seen struct {
	Errors   []string // exceptions, and what the console or the browser calls an error
	Requests []string // addresses asked for, but for those of data
}

type reply struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// Start starts the Chromium at path with a window of so many pixels. The browser ends
// with ctx, or by Close.
func Start(ctx context.Context, path string, width, height int) (*Browser, error) {
	profile, err := os.MkdirTemp("", "placer-browser-")
	if err != nil {
		return nil, err
	}
	b := &Browser{profile: profile, waiting: map[int]chan reply{}, events: map[string]chan struct{}{}, ended: make(chan struct{})}
	if err := b.start(ctx, path, width, height); err != nil {
		b.Close()
		return nil, fmt.Errorf("browser: %w", err)
	}
	return b, nil
}

func (b *Browser) start(ctx context.Context, path string, width, height int) error {
	ours, theirs, err := pipes()
	if err != nil {
		return err
	}
	args := []string{"--headless", "--remote-debugging-pipe", "--user-data-dir=" + b.profile, fmt.Sprintf("--window-size=%d,%d", width, height),
		"--hide-scrollbars", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--font-render-hinting=none", "--force-color-profile=srgb"}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox") // it does not run as root otherwise
	}
	b.cmd = exec.CommandContext(ctx, path, append(args, "about:blank")...)
	b.cmd.ExtraFiles = theirs // 3: what it reads, 4: what it writes
	err = b.cmd.Start()
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		for _, f := range ours {
			f.Close()
		}
		b.cmd = nil
		return err
	}
	b.to = ours[0]
	go b.listen(ours[1])
	var targets struct {
		TargetInfos []struct{ TargetID, Type string }
	}
	if err := b.call(ctx, "Target.getTargets", nil, &targets); err != nil {
		return err
	}
	for _, t := range targets.TargetInfos {
		if t.Type != "page" {
			continue
		}
		var attached struct{ SessionID string }
		if err := b.call(ctx, "Target.attachToTarget", map[string]any{"targetId": t.TargetID, "flatten": true}, &attached); err != nil {
			return err
		}
		b.session = attached.SessionID
		for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
			if err := b.call(ctx, domain+".enable", nil, nil); err != nil {
				return err
			}
		}
		return nil
	}
	return errors.New("it has no page")
}

// pipes returns our ends, to write and to read, and those of the browser.
func pipes() (ours, theirs []*os.File, err error) {
	fromUs, toThem, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	fromThem, toUs, err := os.Pipe()
	if err != nil {
		fromUs.Close()
		toThem.Close()
		return nil, nil, err
	}
	return []*os.File{toThem, fromThem}, []*os.File{fromUs, toUs}, nil
}

// Close ends the browser.
func (b *Browser) Close() {
	if b.to != nil {
		b.to.Close()
	}
	if b.cmd != nil {
		_ = b.cmd.Process.Kill() // it may have ended
		_ = b.cmd.Wait()
		<-b.ended
	}
	_ = os.RemoveAll(b.profile)
}

// Process returns the number of the browser's first process, whose children draw.
func (b *Browser) Process() int { return b.cmd.Process.Pid }

// listen takes messages until the pipe ends.
func (b *Browser) listen(from *os.File) {
	defer close(b.ended)
	defer from.Close()
	for r := bufio.NewReaderSize(from, 1<<20); ; {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			ID     int
			Method string
			Params json.RawMessage
			reply
		}
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if c := b.waiting[m.ID]; m.ID != 0 && c != nil {
			delete(b.waiting, m.ID)
			c <- m.reply
		}
		if c := b.events[m.Method]; c != nil {
			delete(b.events, m.Method)
			close(c)
		}
		b.note(m.Method, m.Params)
		b.mu.Unlock()
	}
}

// note keeps what a quiet page does not do.
func (b *Browser) note(method string, params json.RawMessage) {
	var p struct {
		Type             string
		Args             []struct{ Value any }
		Entry            struct{ Level, Text, URL string }
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
		Request struct{ URL string }
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	switch method {
	case "Runtime.exceptionThrown":
		b.seen.Errors = append(b.seen.Errors, p.ExceptionDetails.Text+" "+p.ExceptionDetails.Exception.Description)
	case "Runtime.consoleAPICalled":
		if p.Type == "error" || p.Type == "assert" {
			b.seen.Errors = append(b.seen.Errors, fmt.Sprint(p.Args))
		}
	case "Log.entryAdded":
		if p.Entry.Level == "error" {
			b.seen.Errors = append(b.seen.Errors, p.Entry.Text+" "+p.Entry.URL)
		}
	case "Network.requestWillBeSent":
		if !strings.HasPrefix(p.Request.URL, "data:") {
			b.seen.Requests = append(b.seen.Requests, p.Request.URL)
		}
	}
}

// Seen returns what was seen since the browser started.
func (b *Browser) Seen() Seen {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen
}

// call sends a command to the page, or to the browser before there is one, and reads
// its result into to unless that is nil.
func (b *Browser) call(ctx context.Context, method string, params, to any) error {
	c := make(chan reply, 1)
	b.mu.Lock()
	b.next++
	id := b.next
	b.waiting[id] = c
	b.mu.Unlock()
	message := map[string]any{"id": id, "method": method}
	if params != nil {
		message["params"] = params
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-b.ended:
		return errors.New("the browser has ended")
	case r := <-c:
		if r.Error != nil {
			return fmt.Errorf("%s: %s", method, r.Error.Message)
		}
		if to == nil {
			return nil
		}
		return json.Unmarshal(r.Result, to)
	}
}

// Open opens the page at address and waits until it has loaded.
func (b *Browser) Open(ctx context.Context, address string) error {
	loaded := make(chan struct{})
	b.mu.Lock()
	b.events["Page.loadEventFired"] = loaded
	b.mu.Unlock()
	var gone struct{ ErrorText string }
	if err := b.call(ctx, "Page.navigate", map[string]any{"url": address}, &gone); err != nil {
		return fmt.Errorf("browser: %w", err)
	}
	if gone.ErrorText != "" {
		return fmt.Errorf("browser: %s: %s", address, gone.ErrorText)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-b.ended:
		return errors.New("browser: it ended while a page was loading")
	case <-loaded:
		return nil
	}
}

// Evaluate evaluates an expression of the page, awaits it where it is a promise, and
// reads its value into to unless that is nil.
func (b *Browser) Evaluate(ctx context.Context, expression string, to any) error {
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	if err := b.call(ctx, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &r); err != nil {
		return fmt.Errorf("browser: %w", err)
	}
	if x := r.ExceptionDetails; x != nil {
		return fmt.Errorf("browser: %s %s", x.Text, x.Exception.Description)
	}
	if to == nil {
		return nil
	}
	return json.Unmarshal(r.Result.Value, to)
}

// Media makes the page one of a medium, screen or print, in the light or the dark scheme.
func (b *Browser) Media(ctx context.Context, medium, scheme string) error {
	return b.call(ctx, "Emulation.setEmulatedMedia", map[string]any{"media": medium, "features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Type presses and releases a key, as the keyboard does.
func (b *Browser) Type(ctx context.Context, key string) error {
	for _, what := range []string{"rawKeyDown", "keyUp"} {
		if err := b.call(ctx, "Input.dispatchKeyEvent", map[string]any{"type": what, "key": key, "code": key, "windowsVirtualKeyCode": map[string]int{"Tab": 9}[key]}, nil); err != nil {
			return err
		}
	}
	return nil
}

// Picture returns the PNG of a part of the page, in its pixels.
func (b *Browser) Picture(ctx context.Context, x, y, width, height float64) ([]byte, error) {
	var r struct{ Data string }
	err := b.call(ctx, "Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true,
		"clip": map[string]any{"x": x, "y": y, "width": width, "height": height, "scale": 1}}, &r)
	if err != nil {
		return nil, fmt.Errorf("browser: %w", err)
	}
	return base64.StdEncoding.DecodeString(r.Data)
}
