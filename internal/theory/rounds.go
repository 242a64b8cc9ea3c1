package theory

import "math"

// RoundVariance returns the variance of the time in which d units depart from n busy slots
// that follows from when each slot comes free, as far as the service, of the squared
// coefficient of variation cv2, does not vary: from 1 on there is none of it. The unit is
// the mean time between two departures, squared.
//
// Work that takes always the same comes in rounds: each slot comes free once in the time
// of a service, at an instant of its own, and keeps it, wherever it was left by who came
// first. After whole rounds that makes no difference. The r units beyond depart with the
// first r of n slots. If the instants are drawn at random, that takes a part of the round
// of the beta distribution of r and n - r, whose variance is r(n-r)/(n+1) in these units.
//
// A gamma distribution with that variance, in which it will be used, has a tail beyond the
// end of the round, where the beta distribution has none. So the variance is at most the
// one whose 99th percentile, by Wilson and Hilferty, is the end of the round.
func RoundVariance(d, n int, cv2 float64) float64 {
	if n < 2 || cv2 >= 1 || d%n == 0 {
		return 0
	}
	slots, r, mean := float64(n), float64(d%n), float64(d)
	variance := r * (slots - r) / (slots + 1)
	const z = 2.4 // of the 99.2nd percentile, which leaves the approximation room
	if off := z*z - 4*(math.Cbrt((mean+slots-r)/mean)-1); off > 0 {
		root := (z - math.Sqrt(off)) / 2
		variance = min(variance, 9*mean*mean*root*root)
	}
	return (1 - cv2) * variance
}
