package demo

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// A Scene is what the live demo says of itself once a second, beside the limiter: measured at
// the clients, so that it is there with protection and without. It is Tick.demo.
//
// Over any time, in requests:
//
//	offered = in time + late + refused + gone + failed + (under way at its end - at its beginning)
type Scene struct {
	Load    float64 `json:"load"`    // offered, as a multiple of the capacity; what the slider sets
	Protect bool    `json:"protect"` // what the switch sets: requests go through the proxy

	CapacityPerSecond float64 `json:"capacity_per_second"`
	Slots             int     `json:"slots"`
	ServiceSeconds    float64 `json:"service_seconds"` // the mean
	DeadlineSeconds   float64 `json:"deadline_seconds"`

	// Per second, since the tick before, over the time that has really passed.
	Offered float64 `json:"offered"`
	InTime  float64 `json:"in_time"` // goodput
	Late    float64 `json:"late"`    // the service had begun when the client left: work in vain
	Refused float64 `json:"refused"` // told no, at once
	Gone    float64 `json:"gone"`    // the client had left before the service began
	Failed  float64 `json:"failed"`  // errors, and what could not be sent
	Dropped float64 `json:"dropped"` // of those that failed: never sent, since MaxUnderWay others were

	UnderWay int     `json:"under_way"` // now: sent, and not ended
	Served   float64 `json:"served"`    // by the service per second, whether or not anybody still waited: throughput
	Waiting  int     `json:"waiting"`   // in the service's own queue

	// Seconds from the intended arrival to the end, since the tick before, of those who were
	// answered in time and of those who left: the latter have waited for their deadline, so a
	// percentile that is the deadline means at least that. Null where there was nobody.
	P50 *float64 `json:"p50"`
	P99 *float64 `json:"p99"`

	GeneratorLate *float64 `json:"generator_late"` // seconds that requests were sent after their time, p99; null as above
	Note          string   `json:"note"`           // one sentence if the load was not offered as it should; else ""
}

// Controls are what a viewer sets: POST /api/v1/demo. A field that is null stays as it is.
type Controls struct {
	Load    *float64 `json:"load"` // 0 to 10
	Protect *bool    `json:"protect"`
}

// MaxWebLoad is the most that a viewer may offer, as a multiple of the capacity. 10 x 200/s are
// 2000 requests/s, a third of one core here, protected or not: a browser needs the rest.
const MaxWebLoad = 10

// CheckWebLoad returns one sentence about a load that is out of range, or nil.
func CheckWebLoad(load float64) error {
	if !(load >= 0 && load <= MaxWebLoad) { // NaN fails too
		return fmt.Errorf("load %v is out of range: 0 to %d times the capacity", load, MaxWebLoad)
	}
	return nil
}

// maxBody is the longest body of a POST. What it may say fits a hundredth of it.
const maxBody = 4 << 10

// readControls reads one JSON object, and says in one sentence what is wrong with it.
func readControls(r io.Reader) (c Controls, err error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	err = d.Decode(&c)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("there is something behind the object")
		}
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		err = fmt.Errorf("%s is a %s", cmp.Or(wrong.Field, "it"), wrong.Value)
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("it is empty")
	}
	if err != nil {
		return c, fmt.Errorf(`the body is not a JSON object such as {"load": 3, "protect": true}, of which each may be left out: %w`, err)
	}
	if c.Load != nil {
		err = CheckWebLoad(*c.Load)
	}
	return c, err
}

// ServeHTTP answers GET and POST /api/v1/demo with the controls that are in force. Whoever mounts
// it keeps other origins out.
func (w *Web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodPost:
		c, err := readControls(http.MaxBytesReader(rw, r.Body, maxBody))
		if err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		w.crowd.set(c)
	default:
		rw.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(rw, fmt.Sprintf("method %s is not allowed: GET reads the controls, POST sets them", r.Method), http.StatusMethodNotAllowed)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(w.crowd.controls()) // whoever asked has left
}
