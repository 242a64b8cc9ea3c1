package demo

// A Scene is what the live demo says of itself once a second, beside the limiter: measured at
// the clients, so that it is there with protection and without. It is Tick.demo.
type Scene struct {
	Load    float64 `json:"load"`    // offered, as a multiple of the capacity; what the slider sets
	Protect bool    `json:"protect"` // what the switch sets: requests go through the proxy

	CapacityPerSecond float64 `json:"capacity_per_second"`
	Slots             int     `json:"slots"`
	ServiceSeconds    float64 `json:"service_seconds"` // the mean
	DeadlineSeconds   float64 `json:"deadline_seconds"`

	// Per second, since the tick before; together with what is under way they add up to offered.
	Offered float64 `json:"offered"`
	InTime  float64 `json:"in_time"` // goodput
	Late    float64 `json:"late"`    // the service answered, and nobody waited any more
	Refused float64 `json:"refused"` // told no, at once
	Gone    float64 `json:"gone"`    // the client had left before the service began
	Failed  float64 `json:"failed"`

	Served  float64 `json:"served"`  // by the service per second, whether or not anybody still waited: throughput
	Waiting int     `json:"waiting"` // in the service's own queue

	// Latency of all that were answered in the last window; null where nobody was.
	P50 *float64 `json:"p50"`
	P99 *float64 `json:"p99"`
}

// Controls are what a viewer sets: POST /api/v1/demo. A field that is null stays as it is.
type Controls struct {
	Load    *float64 `json:"load"` // 0 to 10
	Protect *bool    `json:"protect"`
}
