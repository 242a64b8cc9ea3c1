//go:build linux

package e2e

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/goodput/goodput/e2e/internal/rig"
	"github.com/goodput/goodput/e2e/internal/stage"
)

// A change shows within 3 s on the page: in goodput that crosses half of what the service can do,
// 200 requests a second. Of those 3 s, 0.7 are what it takes for the queue of the service to be as
// long as its clients wait, 500 ms, or half a second for it to be gone; 1.5 s are the tick that has
// more than half of its second behind that; the rest is for whoever else has this machine.
//
// wall clock: what is promised is what a person sees, in the time of persons.
const (
	shows     = 3 * time.Second
	halfOfAll = 100
)

// TestDemoInBrowser is what one sees in one minute, in a quarter of it, with the keyboard alone.
func TestDemoInBrowser(t *testing.T) {
	chromium := rig.Need(t, "chromium")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	p, err := stage.Run(rig.Program(t))
	must(err)
	stopped := false
	defer func() {
		if !stopped {
			p.Stop() //nolint:errcheck // the test has failed
		}
	}()
	page, err := stage.Open(chromium, t.TempDir(), p.URL, stage.Width, stage.Height)
	must(err)
	defer page.Close()

	// shown waits until goodput is above half, or below.
	shown := func(what string, above bool) {
		t.Helper()
		began := time.Now()
		var v float64
		err := page.Until(shows, what, func() (bool, error) {
			var err error
			v, err = page.Goodput()
			return v > halfOfAll == above, err
		})
		if err != nil {
			t.Fatalf("%v: the page shows a goodput of %v/s", err, v)
		}
		figure(t, what, "%v/s after %s", v, millis(time.Since(began)))
	}
	dir := t.TempDir()
	shown("begins well", true)
	must(page.Load(3))
	shown("3x", false)
	must(page.Shot(filepath.Join(dir, stage.Unprotected)))
	must(page.Protect(true))
	shown("3x, protected", true)
	must(page.Shot(filepath.Join(dir, stage.Protected)))
	must(page.Protect(false))
	shown("3x, not protected any more", false)
	must(page.Load(0.8))
	shown("0.8x", true)

	complaints, err := page.Complaints()
	must(err)
	for _, c := range complaints {
		t.Error("the page: ", c)
	}
	page.Close() // the program ends also if it has viewers; that it does is for the tests of the program
	stopped = true
	must(p.Stop())

	// The pictures of the README are there, and are what the command takes now: make screenshots.
	for _, name := range []string{stage.Unprotected, stage.Protected} {
		now, then := picture(t, filepath.Join(dir, name)), picture(t, filepath.Join("../docs/images", name))
		if now != then {
			t.Errorf("%s is %d wide, and the page %d now: make screenshots takes it again", name, then, now)
		}
	}
	readme, err := os.ReadFile("../README.md")
	must(err)
	for _, name := range regexp.MustCompile(`docs/images/[^)"\s]+`).FindAllString(string(readme), -1) {
		if _, err := os.Stat(filepath.Join("..", name)); err != nil {
			t.Errorf("README.md shows a picture that is not there: %v", err)
		}
	}
}

// picture returns the width of one that a README may have: it is not large, and something is
// on it.
func picture(t *testing.T, path string) (width int) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > 150<<10 {
		t.Errorf("%s has %d bytes, more than 150 KB", path, len(b))
	}
	i, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	colours := map[[3]uint32]bool{}
	for y := i.Bounds().Min.Y; y < i.Bounds().Max.Y; y += 3 {
		for x := i.Bounds().Min.X; x < i.Bounds().Max.X; x += 3 {
			r, g, b, _ := i.At(x, y).RGBA()
			colours[[3]uint32{r, g, b}] = true
		}
	}
	if len(colours) < 20 { // text alone has that many greys
		t.Errorf("%s has %d colours: is there anything on it?", path, len(colours))
	}
	return i.Bounds().Dx()
}
