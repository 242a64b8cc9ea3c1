package verify

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// What a query says is in the report as it came, but for the values of parameters that are called
// secrets, by the rule for headers.
func TestShown(t *testing.T) {
	for query, want := range map[string]string{
		"":                       "",
		"q=a%20b&n=1":            "q=a%20b&n=1",
		"token=abc":              "token=...",
		"q=1&api_key=abc&n=2":    "q=1&api_key=...&n=2",
		"X-Amz-Signature=abc":    "X-Amz-Signature=...",
		"X-Amz-Credential=abc":   "X-Amz-Credential=...",
		"sig=abc&se=2026":        "sig=...&se=2026",
		"Password=abc&pwd=abc":   "Password=...&pwd=...",
		"access%5Ftoken=abc":     "access%5Ftoken=...",
		"%74oken=abc":            "%74oken=...",
		"tok%zzen=1&%zzkey=abc":  "tok%zzen=1&%zzkey=...",
		"auth=abc=def&oauth=abc": "auth=...&oauth=...",
		"token":                  "token", // nothing follows it
		"token=":                 "token=...",
		"keyword=hat&author=eve": "keyword=hat&author=eve",
		"session_id=abc&jwt=abc": "session_id=...&jwt=...",
		"design=abc&signal=1":    "design=abc&signal=1",
	} {
		u := &url.URL{Scheme: "http", Host: "h", Path: "/a", RawQuery: query}
		before := u.String()
		got := Shown(u)
		if _, shown, _ := strings.Cut(got, "?"); shown != want || !strings.HasPrefix(got, "http://h/a") {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
		if u.String() != before {
			t.Errorf("%s: the request is now for %s", before, u)
		}
	}
	for _, name := range []string{"Authorization", "cookie", "X-Api-Key", "X-Session", "Proxy-Authorization", "X-Passphrase"} {
		if !Secret(http.CanonicalHeaderKey(name)) {
			t.Errorf("%s is shown", name)
		}
	}
	for _, name := range []string{"Accept", "X-Request-Id", "Content-Type", "Keywords", "Author"} {
		if Secret(name) {
			t.Errorf("%s is hidden", name)
		}
	}
}

// No form of a report has a secret of the URL, nor has a message about a URL that is none.
func TestReportHasNoSecretOfTheURL(t *testing.T) {
	u, err := ParseURL("http://h/a?q=seen&token=hushhush")
	if err != nil {
		t.Fatal(err)
	}
	r := newReport(Config{Target: &Target{URL: u}})
	for form, got := range map[string]string{"text": textOf(t, r, minWidth, false), "json": string(jsonOf(t, r)), "html": htmlOf(t, r), "line": r.Line() + r.Target} {
		if strings.Contains(got, "hushhush") || !strings.Contains(got, "q=seen") {
			t.Errorf("%s: %s", form, got)
		}
	}
	for _, text := range []string{"h/a?token=hushhush", "http://h:port/?token=hushhush", "http:///?token=hushhush", "http://h/?token=hushhush#a", "ftp://h?token=hushhush"} {
		if _, err := ParseURL(text); err == nil || strings.Contains(err.Error(), "hushhush") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
