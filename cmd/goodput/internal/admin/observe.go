package admin

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The switch of observe mode, for an incident in which somebody suspects a limiter: everything
// runs, as if it were not there, and what it would have done is counted.
//
//	curl -X POST 'http://127.0.0.1:8431/api/v1/observe?limiter=NAME&mode=on'
//
// mode is on, off, or policy, which is what the policy file or the flag says; without limiter it
// is about all of them. The answer, in text or JSON, is how it is with each. A mistake changes
// nothing: a limiter= that a shell has left empty, or a name that is misspelt, is refused, for it
// would otherwise be about all.

// Observe is what the listener needs to turn the switch.
type Observe struct {
	Set func(limiter, mode string) error // of one limiter, or with "" of all; the error is about the name
	All func() []Observing               // in the order of Config.Limiters
}

// Observing is whether a limiter observes, and why.
type Observing struct {
	Limiter  string
	On       bool
	Policy   bool      // what the policy file or the flag says
	Switched time.Time // when somebody said what is in force; zero: it is as the policy says
}

// Observed is one limiter in the JSON of the answer.
type Observed struct {
	Name            string  `json:"name"`
	Observe         bool    `json:"observe"`
	Switched        bool    `json:"observe_switched"` // by a POST, whatever the policy says
	SwitchedSeconds float64 `json:"switched_seconds"` // how long ago
	Policy          bool    `json:"policy"`           // what the policy file or the flag says
	Why             string  `json:"why"`
}

// observe turns the switch and answers with what is in force then.
func (a *Admin) observe(w http.ResponseWriter, r *http.Request) {
	limiter, mode, err := switchOf(r.URL.RawQuery)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := a.cfg.Observe.Set(limiter, mode); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	all := a.observing()
	if r.URL.Query().Get("format") == "json" || strings.Contains(r.Header.Get("Accept"), "application/json") {
		writeJSON(w, struct {
			Limiters []Observed `json:"limiters"`
		}{all})
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for i := range all {
		fmt.Fprintf(w, "%s: observe mode is %s, %s\n", all[i].Name, onOff(all[i].Observe), all[i].Why)
	}
}

// switchOf reads the parameters.
func switchOf(query string) (limiter, mode string, err error) {
	q, err := url.ParseQuery(query)
	if err != nil {
		return "", "", fmt.Errorf("the query is malformed: %w", err)
	}
	for key, values := range q {
		switch {
		case !slices.Contains([]string{"limiter", "mode", "format"}, key):
			return "", "", fmt.Errorf("there is no parameter %q: there is limiter, mode, format", key)
		case len(values) > 1:
			return "", "", fmt.Errorf("%s is said %d times: say it once", key, len(values))
		case values[0] == "" && key == "limiter":
			return "", "", fmt.Errorf("limiter is empty: say a name, or leave it out to mean all limiters")
		case key == "format" && values[0] != "json" && values[0] != "text":
			return "", "", fmt.Errorf("format %q is neither text nor json", values[0])
		}
	}
	switch mode = q.Get("mode"); mode {
	case "on", "off", "policy":
		return q.Get("limiter"), mode, nil
	}
	return "", "", fmt.Errorf("mode %q is none of on, off, policy", mode)
}

// observing returns how it is with each limiter.
func (a *Admin) observing() []Observed {
	all := []Observed{}
	if a.cfg.Observe == nil {
		return all
	}
	says := "--observe"
	if a.cfg.Policy != nil {
		if source, _ := a.cfg.Policy(); source != "" {
			says = "the policy file"
		}
	}
	for _, is := range a.cfg.Observe.All() {
		o := Observed{Name: is.Limiter, Observe: is.On, Policy: is.Policy, Why: "as " + says + " has it"}
		if !is.Switched.IsZero() {
			ago := time.Since(is.Switched)
			o.Switched, o.SwitchedSeconds = true, ago.Seconds()
			o.Why = fmt.Sprintf("switched at %s, %s ago; %s has it %s",
				is.Switched.UTC().Format(time.RFC3339), ago.Round(time.Second), says, onOff(is.Policy))
		}
		all = append(all, o)
	}
	return all
}

// observedOf returns how it is with one limiter; nil if nothing is known of it.
func observedOf(all []Observed, limiter string) *Observed {
	if i := slices.IndexFunc(all, func(o Observed) bool { return o.Name == limiter }); i >= 0 {
		return &all[i]
	}
	return nil
}

// sayObserved is a line below the limiter of that name, if somebody has turned the switch.
func sayObserved(w io.Writer, o *Observed) {
	if o != nil && o.Switched {
		fmt.Fprintf(w, "  observe  %s, %s; POST /api/v1/observe?mode=policy ends that\n", onOff(o.Observe), o.Why)
	}
}

func onOff(on bool) string { return map[bool]string{true: "on", false: "off"}[on] }
