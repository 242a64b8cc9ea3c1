package policy

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/cmd/goodput/internal/strictyaml"
	"github.com/goodput/goodput/limit"
)

// read reads src over base.
func read(t *testing.T, base Policy, src string) (Policy, error) {
	t.Helper()
	f, err := strictyaml.Parse("f", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	m := f.Root()
	base.Read(m)
	base.ReadDeadlines(m)
	m.Done()
	if m.Sound() {
		base.Check(m)
	}
	return base, f.Err()
}

// Every key sets its field.
func TestRead(t *testing.T) {
	got, err := read(t, Policy{}, `
limit: 60
objective: 400ms
percentile: 0.95
service: 50ms
depth: 480
max_waiting: 1000
max_queue_bytes: 1MiB
max_wait: 300ms
overflow: block
order: newest_first
exempt: 3
durable: true
allowance: {rate: 90/min, burst: 20}
reserve: {critical: 20%, default: 0.1, sheddable: 5%, background: 0}
deadline: 2s
deadline_cap: 5s
`)
	want := Policy{
		Limiter: admission.Config{
			Limit: limit.Fixed(60), Objective: 400 * time.Millisecond, Percentile: 0.95, Service: 50 * time.Millisecond,
			Depth: 480, MaxItems: 1000, MaxBytes: 1 << 20, MaxWait: 300 * time.Millisecond,
			Overflow: admission.Block, Order: admission.NewestFirst, Exempt: 3, Durable: true,
			Allowance: admission.Quota{Rate: 1.5, Burst: 20},
			Reserve:   admission.Reserve{Critical: 0.2, Default: 0.1, Sheddable: 0.05},
		},
		Deadline: 2 * time.Second, DeadlineCap: 5 * time.Second,
	}
	if err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	// What is read over it changes what it says.
	got, err = read(t, got, "depth: derived\norder: edf\n")
	want.Limiter.Depth, want.Limiter.Order = 0, admission.EDF
	if err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if got, err := read(t, got, "deadline: none\ndeadline_cap: none"); err != nil || got.Deadline != 0 || got.DeadlineCap != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := read(t, got, "allowance: 5/s"); err != nil || got.Limiter.Allowance != (admission.Quota{Rate: 5}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := read(t, got, "allowance: none"); err != nil || got.Limiter.Allowance != (admission.Quota{}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := read(t, got, "depth: none\noverflow: displace\ndurable: false"); err != nil || got.Limiter.Depth != admission.NoQueue || got.Limiter.Overflow != admission.Displace {
		t.Errorf("%+v, %v", got, err)
	}
}

// Every key of the shares sets its field, in the long form and in the short one; none
// takes them back, and an override does not touch what it is read over.
func TestReadTenants(t *testing.T) {
	base, err := read(t, Policy{}, `
limit: 60
tenants:
  rows:
    - {id: acme, weight: 3, max_in_use: 20, max_queue: 50%, quota: {rate: 90/min, burst: 200}, highest: sheddable}
    - {id: umbrella, quota: 5/s}
  others: {weight: 0.5, max_in_use: 7, max_queue: 0.25, quota: {rate: 2/s}, highest: background}
  buckets: 128
  hand: 4
`)
	want := admission.Tenants{
		Rows: []admission.Tenant{
			{ID: "acme", Weight: 3, MaxInUse: 20, MaxQueue: 0.5, Quota: admission.Quota{Rate: 1.5, Burst: 200}, Highest: admission.Sheddable},
			{ID: "umbrella", Quota: admission.Quota{Rate: 5}},
		},
		Others:  admission.Tenant{Weight: 0.5, MaxInUse: 7, MaxQueue: 0.25, Quota: admission.Quota{Rate: 2}, Highest: admission.Background},
		Buckets: 128, Hand: 4,
	}
	if err != nil || !reflect.DeepEqual(*base.Limiter.Tenants, want) {
		t.Fatalf("%+v, %v, want %+v", base.Limiter.Tenants, err, want)
	}
	short, err := read(t, base, "tenants: [{id: acme, weight: 2}]")
	if err != nil || !reflect.DeepEqual(*short.Limiter.Tenants, admission.Tenants{Rows: []admission.Tenant{{ID: "acme", Weight: 2}}}) {
		t.Errorf("%+v, %v", short.Limiter.Tenants, err)
	}
	if none, err := read(t, base, "{tenants: none, reserve: none}"); err != nil || none.Limiter.Tenants != nil || none.Limiter.Reserve != (admission.Reserve{}) {
		t.Errorf("%+v, %v", none.Limiter, err)
	}
	if !reflect.DeepEqual(*base.Limiter.Tenants, want) {
		t.Errorf("what was read over it became %+v", base.Limiter.Tenants)
	}
}

// Every word of an order and of an overflow is the one that the library prints.
func TestWords(t *testing.T) {
	for o := admission.Displace; o <= admission.LatestOnly; o++ {
		if got, err := read(t, Policy{}, "limit: 1\noverflow: "+o.String()); err != nil || got.Limiter.Overflow != o {
			t.Errorf("%v is %v, %v", o, got.Limiter.Overflow, err)
		}
	}
	for o := admission.Auto; o <= admission.EDF; o++ {
		if got, err := read(t, Policy{}, "limit: 1\norder: "+o.String()); err != nil || got.Limiter.Order != o {
			t.Errorf("%v is %v, %v", o, got.Limiter.Order, err)
		}
	}
}

// What is out of range or contradicts something is an error; what is at its end is
// not, and then the library agrees.
func TestRanges(t *testing.T) {
	for src, says := range map[string]string{
		"limit: 0":                                 `limit "0" is not a whole number of 1 to 1048576`,
		"limit: 1048576":                           "",
		"limit: 1048577":                           `limit "1048577"`,
		"objective: 999us":                         `objective "999us" is not a duration of 1ms to 24h`,
		"objective: 24h":                           "",
		"percentile: 0.5":                          "",
		"percentile: 0.9991":                       `percentile "0.9991" is not a number of 0.5 to 0.999`,
		"service: 0s":                              `service "0s" is not a duration`,
		"service: 1s":                              "",
		"service: 1001ms":                          "service 1.001s is longer than objective 1s: nothing could meet it",
		"depth: 0":                                 `depth "0" is not a whole number of 1 to 16777216, none or derived`,
		"depth: 16777216":                          "",
		"depth: all":                               `depth "all" is not a whole number`,
		"max_waiting: 16777216":                    "",
		"max_waiting: 16777217":                    "max_waiting",
		"max_queue_bytes: 1024TiB":                 "",
		"max_queue_bytes: 1025TiB":                 "max_queue_bytes",
		"max_wait: 1ms":                            "",
		"exempt: 1024":                             "",
		"exempt: 1025":                             `exempt "1025" is not a whole number of 1 to 1024`,
		"overflow: drop":                           `overflow "drop" is unknown: displace, refuse_newest, evict_oldest, block or latest_only`,
		"order: lifo":                              `order "lifo" is unknown, did you mean fifo?`,
		"{overflow: block, depth: none}":           "overflow block and no queue contradict each other",
		"{deadline: 2s, deadline_cap: 2s}":         "",
		"{deadline: 3s, deadline_cap: 2s}":         "deadline 3s is longer than deadline_cap 2s: no request may have it",
		"durable: true":                            "overflow displace and durable contradict each other",
		"{durable: true, overflow: latest_only}":   "overflow latest_only and durable contradict each other",
		"{durable: true, overflow: refuse_newest}": "",
		"reserve: {critical: 1}":                   "",
		"reserve: {critical: 100%, default: 1%}":   "the reserves add up to 1.01",
		"reserve: {default: 96%}":                  "",
		"reserve: {critical: 1%, default: 50%, background: 47%}":                                 "the reserves below critical add up to 0.97: at most 32/33, or nothing critical is ever served",
		"reserve: {critical: 101%}":                                                              `critical "101%" is not a part of 0 to 1, such as 0.2 or 20%`,
		"tenants: [{id: a, weight: 1e-12, quota: 1e-6/s, max_queue: 100%, max_in_use: 1048576}]": "weight 1 of the other tenants",
		"tenants: {rows: [{id: a, weight: 1e12}], others: {weight: 1e6}}":                        "",
		"tenants: {rows: [{id: a, weight: 1e12}], others: {weight: 9e5}}":                        `weight 900000 and weight 1e+12 of tenant "a" are more than 1e+06 times apart`,
		"tenants: {buckets: 1024, hand: 16}":                                                     "",
		"tenants: {buckets: 7, hand: 8}":                                                         "tenant hand 8 is more than the 7 buckets",
		"tenants: {hand: 17}":                                                                    `hand "17" is not a whole number of 1 to 16`,
		"tenants: [{id: a, quota: 1e9/s}]":                                                       "",
		"tenants: [{id: a, quota: 0.0000001/s}]":                                                 `quota "0.0000001/s" is out of range`,
		"tenants: [{id: a}, {id: a}]":                                                            `tenant "a" has two rows`,
		"tenants: 3":                                                                             `tenants "3" is not understood`,
		"tenants: none":                                                                          "",
		"tenants: {}":                                                                            "",
		"reserve: none":                                                                          "",
		"allowance: 1e9/s":                                                                       "",
		"allowance: {rate: 0.000001/s, burst: 1}":                                                "",
		"allowance: none":                                                                        "",
		"allowance: 1e-7/s":                                                                      `allowance "1e-7/s" is out of range`,
		"allowance: 0/s":                                                                         `allowance "0/s"`,
		"allowance: 100":                                                                         `allowance "100"`,
		"allowance: {burst: 20}":                                                                 "rate is missing",
		"allowance: {rate: 5/s, burst: 0.5}":                                                     `burst "0.5" is not a number of 1 to 1000000000`,
		"allowance: {rate: 5/s, size: 3}":                                                        "size is unknown",
		"max_bytes: 3":                                                                           "max_bytes is unknown, did you mean max_queue_bytes?",
		"{objective: 400ms, service: '500ms'}":                                                   "service 500ms is longer than objective 400ms",
		"{objective: no, overflow: block, depth: none}":                                          `objective "no"`, // and no contradiction until it is right
	} {
		got, err := read(t, Policy{Limiter: admission.Config{Limit: limit.Fixed(1)}}, src)
		switch {
		case says == "" && err != nil:
			t.Errorf("%s: %v", src, err)
		case says == "":
			if err := got.Limiter.Validate(); err != nil {
				t.Errorf("%s: the library says %v", src, err)
			}
		case err == nil || !strings.Contains(err.Error(), says) || strings.Count(err.Error(), "f:") != 1:
			t.Errorf("%s says %v, want %s", src, err, says)
		}
	}
}

// FuzzRead: whatever a policy file says, what is accepted is valid.
func FuzzRead(f *testing.F) {
	f.Add("limit: 60\nobjective: 400ms\n")
	f.Add("{limit: 1, overflow: block, depth: none, service: 3s}")
	f.Add("percentile: .nan\nmax_wait: 1ns\n")
	f.Add("tenants: {rows: [{id: a, weight: 1e-12, quota: {rate: 1/s, burst: 3}}], others: {weight: 1e-9}, hand: 2, buckets: 1}\nreserve: {critical: 1}\ndurable: true")
	f.Fuzz(func(t *testing.T, src string) {
		file, err := strictyaml.Parse("f", []byte(src))
		if err != nil {
			return
		}
		p := Policy{Limiter: admission.Config{Limit: limit.Fixed(1)}}
		m := file.Root()
		p.Read(m)
		p.ReadDeadlines(m)
		m.Done()
		if m.Sound() {
			p.Check(m)
		}
		if err := p.Limiter.Validate(); file.Err() == nil && err != nil {
			t.Errorf("%q is accepted, and %v", src, err)
		}
	})
}
