package dashboard

import (
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

func ask(method, at string, headers ...string) *http.Response {
	r := httptest.NewRequest(method, at, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w.Result()
}

// Each file has the type that a browser asks for, may do nothing but what the page needs, and is
// sent again only if it has changed.
func TestFilesAreServed(t *testing.T) {
	types := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", "": "text/html; charset=utf-8"}
	for at, f := range files() {
		res := ask("GET", at)
		if got, want := res.Header.Get("Content-Type"), types[path.Ext(at)]; res.StatusCode != http.StatusOK || got != want {
			t.Errorf("%s: %d, %q, want 200, %q", at, res.StatusCode, got, want)
		}
		policy := res.Header.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, want+";") && !strings.HasSuffix(policy, want) {
				t.Errorf("%s: the policy %q has no %q", at, policy, want)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
			t.Errorf("%s: the policy lets more in: %q", at, policy)
		}
		tag := res.Header.Get("ETag")
		if again := ask("GET", at, "If-None-Match", tag); tag == "" || again.StatusCode != http.StatusNotModified {
			t.Errorf("%s: asked again with %q: %d, want 304", at, tag, again.StatusCode)
		}
		if head := ask("HEAD", at); head.StatusCode != http.StatusOK || head.ContentLength != int64(len(f.content)) {
			t.Errorf("HEAD %s: %d, length %d, want 200, %d", at, head.StatusCode, head.ContentLength, len(f.content))
		}
	}
	for _, at := range []string{"/assets/", "/assets/page.html", "/assets/../page.js", "/page.js", "/assets/dashboard.go"} {
		if res := ask("GET", at); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", at, res.StatusCode)
		}
	}
}

// The page goes to browsers, the text to everybody else.
func TestWanted(t *testing.T) {
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "text/*": false, "application/json": false, "text/plain, */*;q=0.1": false,
		"text/html": true, "TEXT/HTML": true, "text/html;q=0.5, text/plain": true, "text/html; q=0": false, "text/html;q=x": true,
		"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8": true, // a browser
		"text/htmlx": false, ",,;": false,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		if got := Wanted(r); got != want {
			t.Errorf("Accept %q: %v, want %v", accept, got, want)
		}
	}
}

// asks matches what a file of ours loads: an attribute, or an import.
var asks = regexp.MustCompile(`(?:src|href)="(/assets/[^"]+)"|(?:from|import) "\./([^"]+)"`)

// What a file asks for is there, and what is there is asked for.
func TestNothingMissingNothingUnused(t *testing.T) {
	all := files()
	used := map[string]bool{"/": true}
	for at, f := range all {
		if strings.Contains(at, "uPlot") {
			continue
		}
		for _, m := range asks.FindAllStringSubmatch(f.content, -1) {
			to := m[1]
			if m[2] != "" {
				to = Assets + m[2]
			}
			used[to] = true
			if _, ok := all[to]; !ok {
				t.Errorf("%s asks for %s, which there is not", at, to)
			}
		}
	}
	for at := range all {
		if !used[at] {
			t.Errorf("nobody asks for %s", at)
		}
	}
}

// Names of tenants are from strangers: no script of ours makes markup or code of a text. A reader
// can read each in one go.
func TestScriptsSetText(t *testing.T) {
	for at, f := range files() {
		if path.Ext(at) != ".js" || strings.Contains(at, "uPlot") {
			continue
		}
		for _, not := range []string{"innerHTML =", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser", "srcdoc", "http://www", "https://"} {
			if strings.Contains(strings.ReplaceAll(f.content, `"http://www.w3.org/2000/svg"`, ""), not) {
				t.Errorf("%s has %q", at, not)
			}
		}
		if !strings.HasPrefix(f.content, "// ") {
			t.Errorf("%s does not begin with its reason", at)
		}
		if n := strings.Count(f.content, "\n"); n >= 400 {
			t.Errorf("%s has %d lines, want less than 400", at, n)
		}
	}
}
