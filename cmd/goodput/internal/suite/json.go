package suite

import (
	"encoding/json"
	"io"
	"math"
)

// JSONVersion is the "version" of the document: a key that is renamed, removed or means
// something else raises it.
const JSONVersion = 1

// A number is null where it is none.
type number float64

func (n number) MarshalJSON() ([]byte, error) {
	if f := float64(n); !math.IsNaN(f) && !math.IsInf(f, 0) {
		return json.Marshal(f)
	}
	return []byte("null"), nil
}

type document struct {
	Version   int                 `json:"version"`
	Program   string              `json:"program"`
	Command   string              `json:"command"`
	Suite     string              `json:"suite"`
	Quick     bool                `json:"quick"`
	Door      string              `json:"door"`
	Requests  uint64              `json:"requests_simulated"`
	Scenarios []documentScenario  `json:"scenarios"`
	Rows      []documentRow       `json:"rows"`
	Criteria  []documentCriterion `json:"criteria"`
}

type documentScenario struct {
	Name   string `json:"name"`
	Why    string `json:"why"`
	Length number `json:"length_seconds"`
	Warmup number `json:"warmup_seconds"`
}

type documentRow struct {
	Scenario       string   `json:"scenario"`
	Law            string   `json:"law"`
	Seeds          []uint64 `json:"seeds"`
	Offered        number   `json:"offered_per_second"`
	Goodput        number   `json:"goodput_per_second"`
	Oracle         number   `json:"oracle_per_second"`
	Ratio          number   `json:"ratio"`
	RatioObjective number   `json:"ratio_within_objective"`
	P99            number   `json:"p99_seconds"`
	Settle         number   `json:"settle_seconds"`
	Limit          number   `json:"limit_mean"`
	Deviation      number   `json:"limit_deviation"`
	Refused        number   `json:"refused_ratio"`
	FirstTen       number   `json:"first_10_seconds_ratio"`
	Restored       number   `json:"restored_seconds"`
	InFlight       number   `json:"in_flight_mean"`
	PeakInFlight   number   `json:"in_flight_peak"`
	Least          number   `json:"least_share"`
	Most           number   `json:"most_share"`
}

type documentCriterion struct {
	Text     string `json:"text"`
	Met      bool   `json:"met"`
	Measured string `json:"measured"`
}

// JSON writes s as one document on one line, with one row per scenario and law. Names of keys
// end in their unit: durations are seconds, shares are 0 to 1. What there is no number
// for is null. program and command say how it came about.
func (s *Suite) JSON(w io.Writer, program, command string) error {
	d := document{
		Version: JSONVersion, Program: program, Command: command, Suite: Name,
		Quick: s.Quick, Door: Doors[s.Door], Requests: s.Requests,
	}
	for i := range s.Cases {
		c := &s.Cases[i]
		d.Scenarios = append(d.Scenarios, documentScenario{c.Name, c.Why, number(c.Scene.Length.Seconds()), number(c.Scene.Warmup.Seconds())})
	}
	for i := range s.Rows {
		r := &s.Rows[i]
		d.Rows = append(d.Rows, documentRow{
			r.Scenario, r.Law, r.Seeds,
			number(r.Offered), number(r.Goodput), number(r.Oracle), number(r.Ratio), number(r.RatioObjective),
			number(r.P99), number(r.Settle), number(r.Limit), number(r.Deviation), number(r.Refused),
			number(r.FirstTen), number(r.Restored), number(r.InFlight), number(r.PeakInFlight), number(r.Least), number(r.Most),
		})
	}
	for _, c := range s.Judge() {
		d.Criteria = append(d.Criteria, documentCriterion(c))
	}
	return json.NewEncoder(w).Encode(&d)
}
