package sim

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// A Fault lets a share of the work of a tier fail for a while: it takes the time that
// it takes, and what comes of it is an error. A request that fails so sends no
// sub-requests.
type Fault struct {
	At    time.Duration // work that ends from here on
	For   time.Duration // and not after At + For
	Share float64       // of it, above 0, to 1
}

func (t *Tier) validateFaults() error {
	if len(t.Faults) > maxParts {
		return fmt.Errorf("faults are %d: at most %d", len(t.Faults), maxParts)
	}
	var last time.Duration
	for i, f := range t.Faults {
		if err := follows(f.At, last, "the end of the one before it"); err != nil {
			return fmt.Errorf("fault %d: %w", i+1, err)
		}
		if f.For <= 0 || f.For > maxTime {
			return fmt.Errorf("fault %d: for %v is out of range: above 0, to %v", i+1, f.For, maxTime)
		}
		if !(f.Share > 0 && f.Share <= 1) {
			return fmt.Errorf("fault %d: share %v is out of range: above 0, to 1", i+1, f.Share)
		}
		last = f.At + f.For
	}
	return nil
}

// faultStream is beside those of stream and of nameStream: what fails changes nothing
// of what comes.
func faultStream(seed uint64, tier int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, 2<<32+uint64(tier)))
}

// fails reports whether work that ends at now does. Instants never fall from call to
// call.
func (t *tier) fails(now time.Duration) bool {
	for t.fault < len(t.Faults) && t.Faults[t.fault].At+t.Faults[t.fault].For <= now {
		t.fault++
	}
	if t.fault == len(t.Faults) || now < t.Faults[t.fault].At {
		return false
	}
	return t.chance.Float64() < t.Faults[t.fault].Share
}
