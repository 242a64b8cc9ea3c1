package config

import (
	"reflect"
	"testing"
	"time"

	"github.com/goodput/goodput/admission"
	"github.com/goodput/goodput/limit"
)

// What a policy says is all in the limiter, and comes back from it: no field is left behind.
func TestPolicyThereAndBack(t *testing.T) {
	p := admission.Config{
		Limit: limit.Fixed(60), Allowance: admission.Quota{Rate: 5}, Objective: 2 * time.Second, Percentile: 0.9, Service: time.Second,
		Depth: 7, MaxItems: 8, MaxBytes: 9, MaxWait: time.Second, MaxAbsence: time.Minute,
		Overflow: admission.Block, Order: admission.EDF, Durable: true, Tenants: &admission.Tenants{}, Reserve: admission.Reserve{Critical: 0.1}, Exempt: 3,
	}
	for i, v := 0, reflect.ValueOf(p); i < v.NumField(); i++ {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() != (name == "Seed") { // each instance has its own
			t.Errorf("%s is not tried", name)
		}
	}
	c := Class{Limiter: limiter(p), Deadline: time.Second, DeadlineCap: 3 * time.Second}
	if got := c.Policy(); got.Limiter != p || got.Deadline != time.Second || got.DeadlineCap != 3*time.Second {
		t.Errorf("%+v, want %+v", got, p)
	}
}
