package verify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"time"
)

// JSONVersion is the "version" of the document. A key that is added leaves it as it is; one
// that is renamed, removed or means something else raises it.
const JSONVersion = 1

// JSON writes r as one document on one line. Names of keys end in their unit: durations are
// seconds, ratios are 0 to 1. What there is no number for is null, an array that is empty is
// []. Figures named in at_least are lower bounds: callers, or the run, ended before. Figures
// of a step have the names and the order of the table of the text.
func (r *Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(r.document())
}

// A number is null where it is none.
type numberJSON float64

func (n numberJSON) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return json.Marshal(f)
}

func secs(d time.Duration) numberJSON { return numberJSON(d.Round(time.Microsecond).Seconds()) }

type documentJSON struct {
	Version   int          `json:"version"`
	Program   string       `json:"program"`
	Command   string       `json:"command"`
	Target    string       `json:"target"`
	Began     *string      `json:"began"` // RFC 3339
	Took      numberJSON   `json:"took_seconds"`
	Verdict   string       `json:"verdict"` // "certified", "not certified", "no answer"
	Certified bool         `json:"certified"`
	Void      *string      `json:"void"` // why there is no answer
	Line      string       `json:"line"`
	Advice    string       `json:"advice"`
	Criteria  []askedJSON  `json:"criteria"`
	Unjudged  []openJSON   `json:"unjudged"` // the criteria without a verdict; with the others they are all
	Capacity  capacityJSON `json:"capacity"`
	Idle      idleJSON     `json:"idle"`
	Steps     []stepJSON   `json:"steps"`
	Seen      []string     `json:"seen"`
	Notes     []string     `json:"notes"`
	Settings  settingsJSON `json:"settings"`
	Legend    []string     `json:"legend"`
	Bin       numberJSON   `json:"bin_seconds"` // width of a bin of a series
}

type askedJSON struct {
	Name     string `json:"name"`
	Text     string `json:"text"`
	Met      bool   `json:"met"`
	Measured string `json:"measured"`
	Why      string `json:"why"`
}

type openJSON struct {
	Name     string `json:"name"`
	Text     string `json:"text"`
	Measured string `json:"measured"`
	Why      string `json:"why"`
}

type settingsJSON struct {
	Method      string       `json:"method"`
	Protocol    string       `json:"protocol"`
	Deadline    numberJSON   `json:"deadline_seconds"`
	Objective   numberJSON   `json:"objective_seconds"`
	Loads       []numberJSON `json:"loads"`
	Length      numberJSON   `json:"step_seconds"`
	Calm        numberJSON   `json:"calm_seconds"`
	Arrivals    string       `json:"arrivals"`
	Attempts    int          `json:"attempts"`
	Obey        bool         `json:"obey_retry_after"`
	Expect      []int        `json:"expected_statuses"` // [] for those of the idle service
	AnyBody     bool         `json:"any_body"`
	Seed        uint64       `json:"seed"`
	MaxRate     numberJSON   `json:"max_per_second"`
	MaxRequests int64        `json:"max_requests"`
}

type idleJSON struct {
	Requests int          `json:"requests"`
	Statuses []statusJSON `json:"statuses"`
	P50      numberJSON   `json:"latency_p50_seconds"`
	Max      numberJSON   `json:"latency_max_seconds"`
	Content  string       `json:"content"`
}

type capacityJSON struct {
	PerSecond numberJSON  `json:"per_second"`
	Error     numberJSON  `json:"standard_error"`
	Given     bool        `json:"given"`
	Why       string      `json:"why"`
	Probes    []probeJSON `json:"probes"`
}

type probeJSON struct {
	Rate    numberJSON  `json:"rate_per_second"`
	Figures figuresJSON `json:"figures"`
	AtLeast []string    `json:"at_least"`
}

type stepJSON struct {
	Load      numberJSON    `json:"load"`
	Rate      numberJSON    `json:"rate_per_second"`
	Figures   figuresJSON   `json:"figures"`
	AtLeast   []string      `json:"at_least"`
	Refusals  []refusalJSON `json:"refusals"`         // of every attempt, as are
	Reasons   []reasonJSON  `json:"reasons"`          // these,
	Statuses  []statusJSON  `json:"statuses"`         // these
	After     delaysJSON    `json:"retry_after"`      // and these
	Earlier   earlierJSON   `json:"earlier_attempts"` // those that another one followed
	Followed  followedJSON  `json:"followed"`
	Error     *string       `json:"first_error"`
	Foreign   *foreignJSON  `json:"first_foreign"`
	Recovered *bool         `json:"recovered"` // null: no load after it
	Series    seriesJSON    `json:"series"`
	Calm      *seriesJSON   `json:"calm"`
}

// A refusal is a form of it, with how many there were. So is a reason.
type refusalJSON struct {
	Form      string     `json:"form"`
	Status    int        `json:"status"`
	Marked    bool       `json:"marked"`
	Count     int64      `json:"count"`
	PerSecond numberJSON `json:"per_second"`
}

type reasonJSON struct {
	Reason    string     `json:"reason"`
	Count     int64      `json:"count"`
	PerSecond numberJSON `json:"per_second"`
}

type statusJSON struct {
	Status int   `json:"status"`
	Count  int64 `json:"count"`
}

type delaysJSON struct {
	Absent    int64       `json:"absent"`
	Zero      int64       `json:"zero"`
	Malformed int64       `json:"malformed"`
	Values    []delayJSON `json:"values"`
	FirstOdd  *string     `json:"first_odd"`
}

type delayJSON struct {
	After numberJSON `json:"seconds"`
	Count int64      `json:"count"`
}

type followedJSON struct {
	Asked   int64 `json:"asked"`
	Served  int64 `json:"served"`
	Refused int64 `json:"refused"`
	Never   int64 `json:"never"`
}

// earlier are the attempts that another one of the same caller followed.
type earlierJSON struct {
	Refused int64 `json:"refused"`
	Failed  int64 `json:"failed"`
	Lost    int64 `json:"lost"`
}

type foreignJSON struct {
	Status int    `json:"status"`
	Type   string `json:"type"`
	Size   int64  `json:"bytes"`
}

// A series has one entry a bin, of the arrivals that were due in it.
type seriesJSON struct {
	Duration numberJSON `json:"duration_seconds"`
	Offered  []int64    `json:"offered"`
	InTime   []int64    `json:"in_time"`
	Late     []int64    `json:"late"`
	Refused  []int64    `json:"refused"`
	GaveUp   []int64    `json:"gave_up"`
	Failed   []int64    `json:"failed"` // with those whose answer is foreign, or whose connection was lost
}

// figures are an object whose keys are in the order of the table.
type figuresJSON []pairJSON

type pairJSON struct {
	key string
	x   numberJSON
}

func (f figuresJSON) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, p := range f {
		x, err := json.Marshal(p.x)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", p.key, x)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
