package admin

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/cmd/goodput/internal/live"
)

// What a limiter does and why, for a person with curl and for a program:
//
//	curl 'http://127.0.0.1:8431/api/v1/explain?limiter=NAME'
//	curl 'http://127.0.0.1:8431/api/v1/explain?limiter=NAME&format=json'
//
// Without limiter it is about all of them. Text is what Limiter.Explain prints, with the rates of the
// last second at its beginning and the settings as a policy file calls them; JSON has the same in
// parts, those of a tick, and all of the last refusals.

// Explanations is the JSON of the answer.
type Explanations struct {
	Version  int         `json:"version"`
	Limiters []Explained `json:"limiters"`
}

// Explained is what a limiter does and why, and how it goes, as in the latest tick.
type Explained struct {
	live.Explanation
	Rates         *live.Rates     `json:"rates"`          // null: there are none yet
	WindowSeconds float64         `json:"window_seconds"` // of the latency
	Latency       *live.Quantiles `json:"latency"`        // null: nothing that had a slot ended in the window
}

func (a *Admin) explained(l *goodput.Limiter) Explained {
	now := a.events.Now(l)
	x := Explained{Explanation: live.Explained(l.Explanation(), now)}
	if now != nil {
		x.Rates, x.WindowSeconds, x.Latency = &now.View.Rates, now.View.WindowSeconds, now.View.Latency
	}
	return x
}

// says is the same as text.
func (a *Admin) says(l *goodput.Limiter) string { return live.Text(l.Explanation(), a.events.Now(l)) }

func (a *Admin) explain(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept")
	name, asJSON, err := explainOf(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	all := a.cfg.Limiters()
	if name != "" {
		one := slices.IndexFunc(all, func(l *goodput.Limiter) bool { return l.Name() == name })
		if one < 0 {
			http.Error(w, fmt.Sprintf("there is no limiter %q: there is %s", name, namesOf(all)), http.StatusNotFound)
			return
		}
		all = all[one : one+1]
	}
	if asJSON {
		x := Explanations{Version: 1, Limiters: []Explained{}}
		for _, l := range all {
			x.Limiters = append(x.Limiters, a.explained(l))
		}
		writeJSON(w, x)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for i, l := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprint(w, a.says(l))
	}
}

// explainOf reads the parameters: format wins over Accept. A limiter= that a shell has left
// empty is a mistake, as it is for observe.
func explainOf(r *http.Request) (limiter string, asJSON bool, err error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return "", false, fmt.Errorf("the query is malformed: %w", err)
	}
	for _, key := range []string{"format", "limiter"} {
		if len(q[key]) > 1 {
			return "", false, fmt.Errorf("%s is said %d times: say it once", key, len(q[key]))
		}
	}
	if limiter = q.Get("limiter"); limiter == "" && q.Has("limiter") {
		return "", false, fmt.Errorf("limiter is empty: say a name, or leave it out to mean all limiters")
	}
	switch format := q.Get("format"); {
	case !q.Has("format"):
		return limiter, strings.Contains(r.Header.Get("Accept"), "application/json"), nil
	case format == "json", format == "text":
		return limiter, format == "json", nil
	default:
		return "", false, fmt.Errorf("format %q is neither text nor json", format)
	}
}

// namesOf lists limiters, and not more of them than a person reads.
func namesOf(all []*goodput.Limiter) string {
	const most = 20
	var names []string
	for _, l := range all[:min(len(all), most)] {
		names = append(names, fmt.Sprintf("%q", l.Name()))
	}
	if more := len(all) - most; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
