// Package dashboard is the page on the admin listener: what limiters do, live, and why.
//
// It is embedded, asks nobody outside, and has no build step: what is in the folder page is
// what the browser gets. The page listens to /api/v1/events and shows ticks of package live.
//
// All that a tick says enters the page as text, since names of tenants come from strangers.
// The policy below is the second line: even a name that got in as markup would load nothing,
// run nothing and send nothing.
package dashboard

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/goodput/goodput/cmd/goodput/internal/uplot"
)

// Assets is the folder of what the page loads.
const Assets = "/assets/"

// contentPolicy: the page loads its own files and talks to its own listener. The charts set
// styles of elements by script, which needs no 'unsafe-inline'; a style in markup would.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed page
var page embed.FS

// A file is what is served at one path.
type file struct{ content, kind, tag string }

// files are all that is served, by path. They are read at the start: a missing one is a
// mistake in the build, not in a request.
func files() map[string]file {
	contents := map[string]string{
		Assets + "uPlot.iife.min.js": uplot.JS,
		Assets + "uPlot.min.css":     uplot.CSS,
	}
	entries, err := page.ReadDir("page")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		raw, err := page.ReadFile("page/" + e.Name())
		if err != nil {
			panic(err)
		}
		at := Assets + e.Name()
		if e.Name() == "page.html" {
			at = "/"
		}
		contents[at] = string(raw)
	}
	all := map[string]file{}
	for at, content := range contents {
		all[at] = file{content, kind(at), fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(content)))}
	}
	return all
}

// kind is the media type of what is at a path. It is not left to the types of the machine: a
// browser runs no module that is called text/plain.
func kind(at string) string {
	switch path.Ext(at) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	}
	return "text/html; charset=utf-8"
}

// Handler serves the page at / and what it loads under Assets, to GET and HEAD. A browser
// asks each time whether a file has changed, since after an update the script and the ticks
// must be of the same version, and is told "not modified" at the cost of no body.
func Handler() http.Handler {
	all := files()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := all[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", f.kind)
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", f.tag)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(f.content))
	})
}

// Wanted reports whether whoever asks for / is a browser, which names text/html among what it
// accepts. What accepts anything, as curl does, is for a person at a terminal.
func Wanted(r *http.Request) bool {
	for _, line := range r.Header.Values("Accept") {
		for one := range strings.SplitSeq(line, ",") {
			kind, with, err := mime.ParseMediaType(one)
			if err != nil || kind != "text/html" {
				continue
			}
			weight, err := strconv.ParseFloat(with["q"], 64)
			return err != nil || weight > 0 // without a weight it is 1
		}
	}
	return false
}
