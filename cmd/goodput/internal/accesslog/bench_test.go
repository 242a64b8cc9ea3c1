package accesslog

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// BenchmarkParse is one line of each format, as its parser reads it.
func BenchmarkParse(b *testing.B) {
	for _, format := range Formats[1:] {
		b.Run(string(format), func(b *testing.B) {
			good := seeds[format]
			p := makerFor(b, format).make(format)
			for _, s := range good {
				parseOne(p, []byte(s))
			}
			line := []byte(good[len(good)-1])
			if format == Nginx {
				line = []byte(nginxLine(200, " 0.024 0.016"))
			}
			var r row
			b.SetBytes(int64(len(line) + 1))
			b.ReportAllocs()
			for b.Loop() {
				r.blank()
				if why, err := p.parse(line, &r); r.Verdict == Malformed || err != nil {
					b.Fatal(why, err)
				}
			}
		})
	}
}

// BenchmarkOpen is a log of nginx from bytes to sorted records, MB/s of log. The
// allocations are those of the whole log, not of a line.
func BenchmarkOpen(b *testing.B) {
	const n = 200_000
	text := strings.Join(nginxLog(rand.New(rand.NewPCG(1, 1)), n), "")
	for _, pending := range []int{DefaultMaxPending, n / 8} {
		b.Run(fmt.Sprintf("pending=%d", pending), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				l, err := Open([]string{"-"}, Options{Stdin: strings.NewReader(text), MaxPending: pending, TempDir: b.TempDir()})
				if err != nil {
					b.Fatal(err)
				}
				if l.Summary().Used != n {
					b.Fatal(l.Summary().Used)
				}
				if err := l.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
