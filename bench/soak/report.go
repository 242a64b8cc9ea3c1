package soak

import "time"

// A Report is what was seen in a run, and needs nothing else to be judged.
type Report struct {
	Seed     uint64        `json:"seed"`
	Length   time.Duration `json:"length_ns"`
	Warm     time.Duration `json:"warm_up_ns"`
	Began    time.Time     `json:"began"`
	Took     time.Duration `json:"took_ns"`
	Commit   string        `json:"commit"` // of the tree
	Go       string        `json:"go"`
	Machine  string        `json:"machine"`
	Note     string        `json:"note,omitempty"` // of whoever made the run, such as why a criterion was missed
	Command  string        `json:"command"`
	Broken   string        `json:"broken,omitempty"` // why the run ended before its time
	Drained  string        `json:"drained"`          // how the process ended after SIGTERM; "" is in order
	CPU      float64       `json:"cpu_s"`            // of the process
	LateP99  time.Duration `json:"late_p99_ns"`      // of the load generator
	LateMost time.Duration `json:"late_most_ns"`
	Told     Told          `json:"clients"`
	Books    Books         `json:"access_log"`
	Minutes  []Minute      `json:"minutes"`
	Samples  []Sample      `json:"samples"`
	Rests    []Rest        `json:"rests"`
	Wrong    []Finding     `json:"wrong"`            // of counters, between the rests
	Unseen   []Finding     `json:"unseen,omitempty"` // what a criterion reads and was not there
	Errors   []string      `json:"error_lines"`
	Classes  []Class       `json:"classes"`
	Busy     int           `json:"busy_seconds"` // that are not judged because the load was late
	Seconds  []Second      `json:"seconds"`
	Calm     *Calm         `json:"calm"`              // nil: not measured, in runs of before
	Outcomes []Outcome     `json:"outcomes"`          // of the metrics, at the end
	Record   int64         `json:"record_bytes"`      // all files of it, at the most
	Dropped  int           `json:"log_lines_dropped"` // of the access log and the record
}

// A Minute is what was done in it, and what the process wrote on stderr.
type Minute struct {
	Reloads  int `json:"reloads"`        // that were taken, as they must be
	Refused  int `json:"refused_files"`  // broken policies that changed nothing, as they must
	Missed   int `json:"missed"`         // of either kind, that did not do as they must
	Restarts int `json:"restarts"`       // of a server
	Resets   int `json:"resets"`         // clients that broke off
	Lines    int `json:"decision_lines"` // of the decision log
}

// A Sample is one look at the process.
type Sample struct {
	At         time.Duration `json:"at_ns"`
	Resident   int64         `json:"resident_bytes"`
	Heap       int64         `json:"heap_in_use_bytes"`
	Goroutines int           `json:"goroutines"`
	Files      int           `json:"files"`
}

// A Rest is a time without load.
type Rest struct {
	At      time.Duration `json:"at_ns"`
	Empty   time.Duration `json:"empty_after_ns"` // how long it took until nothing was left
	Stayed  time.Duration `json:"stayed_ns"`      // for how long it was looked at after that; 0: not measured
	Took    time.Duration `json:"took_ns"`        // 0: not measured
	Left    []string      `json:"left"`           // what was there after that, or never went
	Differs []string      `json:"differs"`        // counters that do not add up
	Heap    int64         `json:"heap_in_use_bytes"`
	Gorout  int           `json:"goroutines"`
	Files   int           `json:"files"`
	Told    Told          `json:"clients"` // since the start
	Lines   int           `json:"access_log_lines"`
}

// A Finding is something that must not be, at some instant.
type Finding struct {
	At   time.Duration `json:"at_ns"`
	What string        `json:"what"` // the criterion
	Said string        `json:"said"`
}

// A Class is what became of a class that queues, in the seconds that are judged.
type Class struct {
	Name    string      `json:"name"`
	Seconds int         `json:"seconds"`
	Offered int         `json:"offered"`
	InTime  int         `json:"in_time"`
	Speed   float64     `json:"speed"`     // part of the time in the servers' slots that was work
	Of      []Quantiles `json:"deadlines"` // by the deadline that callers had
}

// Calm is what happened while nothing did: no server was away or coming back, no rest was, and no
// request was sent late, in any second from when a request was due to its end. Then nobody has a reason to hang
// or to be cut, nor for an answer that is neither good nor a marked refusal.
type Calm struct {
	Requests int `json:"requests"` // due when there was calm for as long as the most patient client waits
	Hung     int `json:"hung"`
	Lost     int `json:"lost"`   // without those that hung
	Failed   int `json:"failed"` // before the deadline: after it the answer is 504, since the server was not done
}

// A Second is what was due in it, of each class: plain, auto.
type Second struct {
	Judged  bool          `json:"judged"`
	Late    time.Duration `json:"late_ns"`
	Offered [2]int        `json:"offered"`
	InTime  [2]int        `json:"in_time"`
	Above   [2]int        `json:"above_objective"` // of the answers of 2xx
}

// Quantiles are of what was answered 200 among the requests with one deadline, from when each was
// due.
type Quantiles struct {
	Deadline time.Duration `json:"deadline_ns"`
	Answers  int           `json:"answers"`
	P50      time.Duration `json:"p50_ns"`
	P99      time.Duration `json:"p99_ns"`
}

// Ratio is in time / min(offered, capacity): the goodput ratio. What sleeps overran by is
// lost capacity, and Speed says how much that is.
func (c Class) Ratio() float64 {
	most := min(float64(c.Offered), capacity*c.Speed*float64(c.Seconds))
	if most == 0 {
		return 0
	}
	return float64(c.InTime) / most
}

// An Outcome is a count of the metrics at the end.
type Outcome struct {
	Class   string `json:"class"`
	Outcome string `json:"outcome"`
	Reason  string `json:"reason"`
	Count   int    `json:"count"`
}
