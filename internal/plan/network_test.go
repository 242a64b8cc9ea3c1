package plan

import (
	"math"
	"testing"
)

// A closed network has a closed form, the sum over its states: with j customers of
// m in c servers of mean s, the others for a delay z, the weight is
// z^(m-j)/(m-j)! x s^j/(j! or c! c^(j-c)).
func TestWithinAgainstSums(t *testing.T) {
	for _, c := range []struct {
		m       int
		servers float64
		s, z    float64
	}{{1, 1, 0.04, 0.01}, {10, 3, 0.04, 0.01}, {60, 120, 0.04, 0.012}, {150, 120, 0.04, 0.01}, {150, 20, 0.004, 0.05}, {200, 5, 0.1, 0}, {300, 100, 0.05, 0.1}} {
		sum := func(m int) float64 { // the logarithm of the weights of m customers
			var logs []float64
			for j := 0; j <= m; j++ {
				if c.z == 0 && j < m {
					continue
				}
				rest, _ := math.Lgamma(float64(m-j) + 1)
				w := -rest
				if m > j {
					w += float64(m-j) * math.Log(c.z)
				}
				for k := 1; k <= j; k++ {
					w += math.Log(c.s / math.Min(float64(k), c.servers))
				}
				logs = append(logs, w)
			}
			top := math.Inf(-1)
			for _, w := range logs {
				top = max(top, w)
			}
			total := 0.0
			for _, w := range logs {
				total += math.Exp(w - top)
			}
			return top + math.Log(total)
		}
		got := within(float64(c.m), c.z, servers(c.servers, c.s))(math.Inf(1))
		near(t, "throughput", got, math.Exp(sum(c.m-1)-sum(c.m)), 1e-9)
	}
}
