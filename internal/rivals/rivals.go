// Package rivals has the adaptive limits of others as laws, to be compared with ours in
// the same simulator: what they are measured to do there is what they do in a benchmark of
// the libraries themselves, to within 5 points, or they would be straw men.
//
// The three that are published as laws, AIMD, Vegas and Gradient2, are in package limit.
// The others are written here from their sources: what they look at, when they move and
// their constants are theirs, the code is not.
package rivals

import (
	"fmt"

	"github.com/goodput/goodput/limit"
)

// Names are the laws that Named knows, in the order of tables. Those that begin with
// gcl are what the Go port of the Netflix laws,
// github.com/platinummonkey/go-concurrency-limits, makes of them.
var Names = []string{
	"aimd", "vegas", "gradient2", "bbr", "envoy", "failsafe",
	"gcl_aimd", "gcl_vegas", "gcl_gradient2",
}

// widest is what a limit of Named may be at most, and 1 at least: the defaults of some end
// at 200, or begin at 20, which would be about the scenario and not the law. Max of BBR is
// 10,000 besides: it has none.
const widest = 1000

// Published returns the law of that name as its authors have it: with their start and bounds.
func Published(name string) (limit.Law, error) {
	switch name {
	case "aimd":
		return limit.AIMD{}, nil
	case "vegas":
		return limit.Vegas{}, nil
	case "gradient2":
		return limit.Gradient2{}, nil
	case "bbr":
		return BBR{}, nil
	case "envoy":
		return Envoy{}, nil
	case "failsafe":
		return Failsafe{}, nil
	case "gcl_aimd":
		return gclAIMD(0, 1, limit.Max), nil
	case "gcl_vegas":
		return gclVegas(0, 0), nil
	case "gcl_gradient2":
		return gclGradient2(0, 0, 0), nil
	}
	return nil, unknown(name)
}

func unknown(name string) error {
	return fmt.Errorf("law %q is unknown: one of %v", name, Names)
}

// Named returns the law of that name with its published constants, but for its bounds: from
// 1 to 1000. It starts at from, or where its authors start it if from is 0; for bbr and
// envoy, which measure before they decide, that is all there is to a start. The
// error is a sentence about a name that is not among Names, or about from.
func Named(name string, from int) (limit.Law, error) {
	var l limit.Law
	switch name {
	case "aimd":
		l = limit.AIMD{From: from, Min: 1, Max: widest}
	case "vegas":
		l = limit.Vegas{From: from, Min: 1, Max: widest}
	case "gradient2":
		l = limit.Gradient2{From: from, Min: 1, Max: widest}
	case "bbr":
		l = BBR{From: from}
	case "envoy":
		l = Envoy{From: from}
	case "failsafe":
		l = Failsafe{From: from, Max: widest}
	case "gcl_aimd":
		l = gclAIMD(from, 1, widest)
	case "gcl_vegas":
		l = gclVegas(from, widest)
	case "gcl_gradient2":
		l = gclGradient2(from, 1, widest)
	default:
		return nil, unknown(name)
	}
	if _, err := l.Start(); err != nil {
		return nil, err
	}
	return l, nil
}
