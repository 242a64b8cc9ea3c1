package accesslog

import (
	"bytes"
	"time"
)

// Stamps become nanoseconds since 1970 UTC without package time where their
// zone is in the line: time.Parse takes 100 ns of the 400 that a line may take.

// daysBefore[m] is how many days of a year without a leap day precede month m.
var daysBefore = [...]int64{0, 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365}

// A moment is a stamp as it is written.
type moment struct {
	year, month, day, hour, minute, second, nanos int64
	offset                                        int64 // seconds east of UTC
	zoned                                         bool  // the offset was written
}

// unix returns the instant, in zone if none was written; not ok if there is no
// such day or hour, or outside 1970 to 2261, beyond which 63 bits end.
func (m *moment) unix(zone *time.Location) (ns int64, ok bool) {
	leap := m.year%4 == 0 && (m.year%100 != 0 || m.year%400 == 0)
	if m.year < 1970 || m.year > 2261 || m.month < 1 || m.month > 12 || m.day < 1 ||
		m.hour > 23 || m.minute > 59 || m.second > 60 {
		return 0, false
	}
	last := daysBefore[m.month+1] - daysBefore[m.month]
	if leap && m.month == 2 {
		last++
	}
	if m.day > last {
		return 0, false
	}
	if !m.zoned && zone != nil && zone != time.UTC {
		t := time.Date(int(m.year), time.Month(m.month), int(m.day), int(m.hour), int(m.minute), int(m.second), int(m.nanos), zone)
		return t.UnixNano(), true
	}
	y := m.year - 1
	days := (m.year-1970)*365 + (y/4 - y/100 + y/400) - (1969/4 - 1969/100 + 1969/400) + daysBefore[m.month] + m.day - 1
	if leap && m.month > 2 {
		days++
	}
	return ((days*24+m.hour)*60+m.minute)*60*nano + (m.second-m.offset)*nano + m.nanos, true
}

// digits reads exactly n digits at b[i].
func digits(b []byte, i, n int) (v int64, ok bool) {
	if i+n > len(b) {
		return 0, false
	}
	for _, c := range b[i : i+n] {
		if !isDigit(c) {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	return v, true
}

// clock reads "15:04:05" and a fraction from b[i], and returns where it ends.
func (m *moment) clock(b []byte, i int) (end int, ok bool) {
	var okH, okM, okS bool
	m.hour, okH = digits(b, i, 2)
	m.minute, okM = digits(b, i+3, 2)
	m.second, okS = digits(b, i+6, 2)
	if !okH || !okM || !okS || b[i+2] != ':' || b[i+5] != ':' {
		return i, false
	}
	i += 8
	if i == len(b) || b[i] != '.' && b[i] != ',' {
		return i, true
	}
	j := i + 1
	for ; j < len(b) && isDigit(b[j]); j++ {
		if j-i <= 9 {
			m.nanos = m.nanos*10 + int64(b[j]-'0')
		}
	}
	if j == i+1 {
		return i, false
	}
	m.nanos *= scaleOf[min(j-i-1, 9)]
	return j, true
}

// zone reads "Z", "+01:00", "+0100", "+01" or nothing, to the end of b.
func (m *moment) zone(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	m.zoned = true
	if len(b) == 1 {
		return b[0] == 'Z' || b[0] == 'z'
	}
	if string(b) == "UTC" || string(b) == "GMT" {
		return true
	}
	h, ok := digits(b, 1, 2)
	var minutes int64
	okM := true
	switch {
	case len(b) == 3:
	case len(b) == 5:
		minutes, okM = digits(b, 3, 2)
	case len(b) == 6 && b[3] == ':':
		minutes, okM = digits(b, 4, 2)
	default:
		return false
	}
	m.offset = h*3600 + minutes*60
	if b[0] == '-' {
		m.offset = -m.offset
	}
	return ok && okM && h <= 23 && minutes <= 59 && (b[0] == '+' || b[0] == '-')
}

// readISO reads "2006-01-02T15:04:05.999Z", with a space for the T, with another
// zone or none.
func readISO(b []byte, zone *time.Location) (ns int64, ok bool) {
	var m moment
	if len(b) < 19 || b[4] != '-' || b[7] != '-' || b[10] != 'T' && b[10] != ' ' && b[10] != 't' {
		return 0, false
	}
	var okY, okM, okD bool
	m.year, okY = digits(b, 0, 4)
	m.month, okM = digits(b, 5, 2)
	m.day, okD = digits(b, 8, 2)
	i, okC := m.clock(b, 11)
	if !okY || !okM || !okD || !okC || !m.zone(bytes.TrimLeft(b[i:], " ")) {
		return 0, false
	}
	return m.unix(zone)
}

// readCLF reads "02/Jan/2006:15:04:05 +0100", as nginx and Apache write it, and
// the same with a fraction and no zone, as HAProxy does.
func readCLF(b []byte, zone *time.Location) (ns int64, ok bool) {
	var m moment
	if len(b) < 20 || b[2] != '/' || b[6] != '/' || b[11] != ':' {
		return 0, false
	}
	var okY, okD bool
	m.day, okD = digits(b, 0, 2)
	m.month = monthOf(b[3:6])
	m.year, okY = digits(b, 7, 4)
	i, okC := m.clock(b, 12)
	if !okD || !okY || !okC || !m.zone(bytes.TrimLeft(b[i:], " ")) {
		return 0, false
	}
	return m.unix(zone)
}

// monthOf returns 1 to 12, or 0.
func monthOf(b []byte) int64 {
	const names = "JanFebMarAprMayJunJulAugSepOctNovDec"
	for i := 0; i < len(names); i += 3 {
		if string(b) == names[i:i+3] {
			return int64(i/3) + 1
		}
	}
	return 0
}

// readStamp reads any of the notations of a date.
func readStamp(b []byte, zone *time.Location) (ns int64, ok bool) {
	if ns, ok = readISO(b, zone); ok {
		return ns, true
	}
	return readCLF(b, zone)
}

// A stampCache remembers the last stamp: a busy server writes the same one
// hundreds of times.
type stampCache struct {
	zone *time.Location
	text []byte
	ns   int64
}

func (c *stampCache) clf(b []byte) (ns int64, ok bool) {
	if len(b) != 0 && bytes.Equal(b, c.text) {
		return c.ns, true
	}
	if ns, ok = readCLF(b, c.zone); ok {
		c.text, c.ns = append(c.text[:0], b...), ns
	}
	return ns, ok
}
