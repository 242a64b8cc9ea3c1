package sim

import (
	"testing"
	"time"
)

func BenchmarkPlain(b *testing.B) {
	s := plain(0.9, exponential50, 2*time.Second, 0)
	s.Length = 5*time.Second + time.Duration(float64(b.N)/1080*1e9)
	b.ReportAllocs()
	b.ResetTimer()
	r, err := Run(s, 1)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(r.Total.Requests)/b.Elapsed().Seconds(), "requests/s")
}
