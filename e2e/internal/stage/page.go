//go:build linux

package stage

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A Page is the page of a Program, in a browser of its own.
type Page struct {
	ctx   context.Context
	url   string
	close []func() // in the order in which they are called

	mu    sync.Mutex
	said  []string // on the console, of any level
	asked []string // addresses that it wanted
}

// Open opens url in Chromium, light, and returns when the page has the first numbers of the demo.
// The profile is a folder that is the browser's own.
func Open(chromium, profile, url string, width, height int64) (p *Page, err error) {
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(chromium), chromedp.UserDataDir(profile), chromedp.NoSandbox,
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", true))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(alloc)
	p = &Page{ctx: ctx, url: url, close: []func(){cancel, stop}}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	if err := chromedp.Do(ctx); err != nil {
		return nil, fmt.Errorf("starting %s: %w", chromium, err)
	}
	if err := chromedp.Listen(ctx, p.heard); err != nil {
		return nil, err
	}
	light := chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}},
		})
		return err
	})
	if err := p.do(chromedp.EmulateViewport(width, height), light, chromedp.Navigate(url)); err != nil {
		return nil, err
	}
	return p, p.Until(10*time.Second, "the page shows the demo", func() (bool, error) {
		return eval[bool](p, `document.getElementById("demo")?.hidden === false`)
	})
}

// Close ends the browser.
func (p *Page) Close() {
	for _, c := range p.close {
		c()
	}
}

func (p *Page) heard(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		said := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			said += " " + x.Description
		}
		p.said = append(p.said, "exception: "+said)
	case *runtime.EventConsoleAPICalled:
		p.said = append(p.said, "console: "+string(e.Type))
	case *log.EventEntryAdded:
		p.said = append(p.said, "log: "+e.Entry.Text)
	case *network.EventRequestWillBeSent:
		p.asked = append(p.asked, e.Request.URL)
	}
}

// Complaints are what the page said on the console, and the addresses outside of the program that it
// asked for. It errs if it has asked for nothing at all: then nobody listened.
func (p *Page) Complaints() ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := slices.Clone(p.said)
	own := 0
	for _, url := range p.asked {
		switch {
		case strings.HasPrefix(url, p.url):
			own++
		case !strings.HasPrefix(url, "data:"):
			all = append(all, "it asks for "+url)
		}
	}
	if own < 3 { // itself, its script, its events
		return nil, fmt.Errorf("the page asked for %q: the count of requests is not to be trusted", p.asked)
	}
	return all, nil
}

// patience is how long the browser has for what takes it milliseconds.
const patience = 10 * time.Second

func (p *Page) do(steps ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Do(ctx, steps...)
}

func eval[T any](p *Page, js string) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		err = fmt.Errorf("%s: %w", js, err)
	}
	return v, err
}

// Until asks ok ten times a second until it holds, for so long.
func (p *Page) Until(within time.Duration, what string, ok func() (bool, error)) error {
	for end := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		yes, err := ok()
		if yes || err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("not so within %v: %s", within, what)
		}
	}
}

// Load moves the slider to a load with the keyboard: with the arrows, or with Home to its beginning.
func (p *Page) Load(to float64) error {
	if err := p.do(chromedp.Focus(chromedp.CSS("#load"))); err != nil {
		return err
	}
	at, err := p.slider()
	for range 200 { // 100 steps of 0.1 are all there are
		if err != nil || at == to {
			return err
		}
		key := kb.ArrowRight
		switch {
		case to == 0:
			key = kb.Home
		case at > to:
			key = kb.ArrowLeft
		}
		if err = p.do(chromedp.KeyEvent(key)); err == nil {
			at, err = p.slider()
		}
	}
	return fmt.Errorf("the slider does not get to %v: it is at %v", to, at)
}

func (p *Page) slider() (float64, error) {
	return eval[float64](p, `Number(document.getElementById("load").value)`)
}

// Protect flips the switch with the keyboard, unless it is there already.
func (p *Page) Protect(on bool) error {
	const checked = `document.getElementById("protect").getAttribute("aria-checked") === "true"`
	is, err := eval[bool](p, checked)
	if err != nil || is == on {
		return err
	}
	if err := p.do(chromedp.Focus(chromedp.CSS("#protect")), chromedp.KeyEvent(" ")); err != nil {
		return err
	}
	if is, err = eval[bool](p, checked); err == nil && is != on {
		err = fmt.Errorf("the switch says %v after it was flipped to %v", is, on)
	}
	return err
}

var leading = regexp.MustCompile(`^[0-9.]+`)

// Goodput is the figure that the page shows, in requests per second.
func (p *Page) Goodput() (float64, error) {
	text, err := eval[string](p, `document.getElementById("demo-goodput").textContent`)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(leading.FindString(text), 64)
	if err != nil {
		return 0, fmt.Errorf("the page shows a goodput of %q", text)
	}
	return v, nil
}

// Note is what the page says of the load if it was not offered as it should be: "" if it was.
func (p *Page) Note() (string, error) {
	return eval[string](p, `document.getElementById("demo-note").textContent`)
}

// The pictures of the README, by the names that they have there, and the screen that they are taken
// of. A README is 900 points wide, or so.
const (
	Unprotected = "demo-unprotected.png"
	Protected   = "demo-protected.png"

	Width, Height = 960, 1000
)

// Shot writes a picture of the demo, without what is below it on the page, and with the focus
// nowhere: it is no part of what is to be seen.
func (p *Page) Shot(path string) error {
	if _, err := eval[bool](p, `document.activeElement.blur(), new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.Screenshot(chromedp.CSS("#demo")))
	if err != nil {
		return fmt.Errorf("picture of the demo: %w", err)
	}
	return os.WriteFile(path, png, 0o644)
}
