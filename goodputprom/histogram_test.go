package goodputprom

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goodput/goodput"
	"github.com/goodput/goodput/internal/hist"
	dto "github.com/prometheus/client_model/go"
)

func write(t *testing.T, h *goodput.Histogram, longest time.Duration) *dto.Histogram {
	t.Helper()
	var m dto.Metric
	if err := (&histogram{histograms[0].desc, nil, h, boundsPast(longest)}).Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.Histogram
}

// The native part is decoded as Prometheus does it and must give back the
// counts, in buckets that end at 2^(index/8).
func TestNativeBucketsAreTheCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var h goodput.Histogram
	for range 1000 {
		h.Add(time.Duration(math.Exp(rng.NormFloat64()*4) * float64(time.Millisecond)))
	}
	h.Add(0)
	h.Add(2 * time.Hour)
	m := write(t, &h, time.Second)

	got := map[float64]uint64{} // by upper bound
	var index int32
	var count int64
	d := 0
	total := m.GetZeroCount()
	for _, span := range m.PositiveSpan {
		index += span.GetOffset()
		for range span.GetLength() {
			count += m.PositiveDelta[d]
			d++
			got[math.Exp2(float64(index)/8)] = uint64(count)
			total += uint64(count)
			index++
		}
	}
	if total != h.Count || m.GetSampleCount() != h.Count || m.GetSampleSum() != h.Sum {
		t.Fatalf("%d in buckets, %d samples, sum %v; want %d and %v", total, m.GetSampleCount(), m.GetSampleSum(), h.Count, h.Sum)
	}
	for i, want := range h.Counts {
		if i == 0 || i == hist.N-1 {
			continue // the zero bucket, and the one without an end
		}
		var n uint64
		for bound, c := range got {
			if math.Abs(bound/hist.Bound(i)-1) < 1e-9 {
				n = c
			}
		}
		if n != want {
			t.Errorf("the bucket that ends at %v s has %d, want %d", hist.Bound(i), n, want)
		}
	}
}

// C135: counters never fall. Classic buckets are interpolated, so this is not
// obvious for them.
func TestClassicBucketsNeverFall_C135(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var h goodput.Histogram
	before := write(t, &h, time.Minute)
	for range 2000 {
		h.Add(time.Duration(rng.ExpFloat64() * float64(300*time.Millisecond)))
		now := write(t, &h, time.Minute)
		var lower uint64
		for i, b := range now.Bucket {
			n := b.GetCumulativeCount()
			if n < before.Bucket[i].GetCumulativeCount() || n < lower || n > h.Count {
				t.Fatalf("le=%v went from %d to %d, after %d at the bound below, of %d",
					b.GetUpperBound(), before.Bucket[i].GetCumulativeCount(), n, lower, h.Count)
			}
			lower = n
		}
		before = now
	}
}

// An estimate between two bounds that are 9.1 % apart is off by less than the
// bucket that the bound lies in holds; C130: in seconds.
func TestClassicBucketsAreClose_C130(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var h goodput.Histogram
	var all []time.Duration
	for range 10_000 {
		d := time.Duration(rng.ExpFloat64() * float64(250*time.Millisecond))
		h.Add(d)
		all = append(all, d)
	}
	for _, b := range write(t, &h, time.Second).Bucket {
		var exact, inBucket float64
		for _, d := range all {
			if d.Seconds() <= b.GetUpperBound() {
				exact++
			}
		}
		for i, c := range h.Counts[:hist.N-1] {
			if hist.Bound(i) >= b.GetUpperBound() {
				inBucket = float64(c)
				break
			}
		}
		if off := math.Abs(float64(b.GetCumulativeCount()) - exact); off > inBucket {
			t.Errorf("le=%v: %d, counted %v, and only %v are in doubt", b.GetUpperBound(), b.GetCumulativeCount(), exact, inBucket)
		}
	}
}

// C128: the buckets cover the longest deadline by construction.
func TestBucketsReachPastTheDeadline_C128(t *testing.T) {
	for longest, want := range map[time.Duration]float64{
		0: 10, time.Second: 10, 10 * time.Second: 10, 11 * time.Second: 30,
		5 * time.Minute: 300, time.Hour: 3600, 24 * time.Hour: 24 * 3600,
	} {
		b := boundsPast(longest)
		if last := b[len(b)-1].seconds; last != want {
			t.Errorf("for %v the last bound is %v s, want %v s", longest, last, want)
		}
	}
}
