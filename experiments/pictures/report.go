package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"placer/internal/browser"
	"placer/internal/cli"
	"placer/internal/fsx"
)

// Window in which the report is photographed, in pixels.
const reportWidth, reportHeight = 1280, 1235

// photograph writes report-light.png and report-dark.png into folder: the head of the
// report of the run, from its title to the end of the timeline.
func photograph(run, folder string) error {
	path, err := browser.Find()
	if err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "placer-pictures-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	page := filepath.Join(temporary, "report.html")
	var said bytes.Buffer
	if code := cli.Main([]string{"report", run, "-o", page}, bytes.NewReader(nil), io.Discard, &said); code != 0 {
		return errors.New(said.String())
	}
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	b, err := browser.Start(ctx, path, reportWidth, reportHeight)
	if err != nil {
		return err
	}
	defer b.Close()
	if err := b.Open(ctx, "file://"+page); err != nil {
		return err
	}
	for _, th := range themes() {
		if err := b.Media(ctx, "screen", th.name); err != nil {
			return err
		}
		var height float64
		if err := b.Evaluate(ctx, settled, &height); err != nil {
			return err
		}
		picture, err := b.Picture(ctx, 0, 0, reportWidth, height)
		if err != nil {
			return err
		}
		if err := fsx.WriteFile(filepath.Join(folder, "report-"+th.name+".png"), func(w io.Writer) error {
			_, err := w.Write(picture)
			return err
		}); err != nil {
			return err
		}
	}
	if seen := b.Seen(); len(seen.Errors) > 0 {
		return fmt.Errorf("the page says %s", seen.Errors)
	}
	return nil
}

// settled resolves when the timeline has been drawn, to the page's height above its
// second section.
const settled = `new Promise(done => {
  const look = () => document.documentElement.dataset.ready ? requestAnimationFrame(() => requestAnimationFrame(() => done(document.getElementById("memory").getBoundingClientRect().top + scrollY))) : setTimeout(look, 5);
  look();
})`
