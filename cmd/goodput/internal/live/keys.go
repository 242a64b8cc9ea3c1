package live

import (
	"regexp"
	"strings"

	"github.com/goodput/goodput"
)

// keysOf are the keys of a policy file, which an operator has, for the fields of goodput.Config
// that a Knob may name, which a program in Go has.
var keysOf = map[string]string{
	"Allowance":  "allowance",
	"Depth":      "depth",
	"MaxAbsence": "max_absence",
	"MaxBytes":   "max_queue_bytes",
	"MaxInUse":   "tenants.max_in_use",
	"MaxItems":   "max_waiting",
	"MaxWait":    "max_wait",
	"Objective":  "objective",
	"Overflow":   "overflow",
	"Priority":   "priority",
	"Size":       "size",
}

// drained is the only thing of the kind that is no key: a signal does it.
const drained = "Drain"

var (
	field  = regexp.MustCompile(`\b[A-Z][A-Za-z]+`)
	quotas = strings.NewReplacer("tenant quota ", "tenants.quota ", "the quota of its tenant", "tenants.quota")
)

// Knob returns the setting that decided, in the words of a policy file:
//
//	objective 300ms at a limit of 60 (90 may wait)
//	tenants.quota 50/s, burst 50
func Knob(r *goodput.Rejection) string {
	return quotas.Replace(field.ReplaceAllStringFunc(r.Knob(), func(name string) string {
		if key := keysOf[name]; key != "" {
			return key
		}
		if name == drained {
			return "the shutdown"
		}
		return name
	}))
}
