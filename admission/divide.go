package admission

import "math"

// A part is what one of several gets of a number of whole units.
type part struct {
	lo, hi int // at least, at most
	base   int // shares are counted from here
	weight float64
	units  int // the answer

	fixed bool // scratch: at its lo or hi
}

// divide gives each part as many units as make units - base the same for each unit of
// weight, within lo and hi, and in all as many as total, or what all lo or hi add up to.
//
// Where that does not come out even, each next unit goes to the part whose
// (units - base) / weight with it is least, the first of equals: D'Hondt. With the largest
// remainder somebody may lose a unit because there is one more of them; here nobody does
// (Balinski, Young, "Fair Representation", 1982). The level is found as if units were not whole, what is
// below it is given at once, and at most one or two for each part are left.
func divide(total int, parts []part) {
	left := total
	level := even(float64(total), parts)
	for i := range parts {
		p := &parts[i]
		if !p.fixed {
			// A millionth is more than a level can be wrong, and what it leaves out comes below.
			x := math.Floor(float64(p.base) + level*p.weight - 1e-6)
			p.units = int(min(max(x, float64(p.lo)), float64(p.hi)))
		}
		left -= p.units
	}
	for ; left > 0; left-- {
		var least *part
		for i := range parts {
			p := &parts[i]
			if p.units < p.hi && (least == nil || p.next() < least.next()) {
				least = p
			}
		}
		if least == nil {
			return
		}
		least.units++
	}
}

// next is the level that the part reaches with one more unit.
func (p *part) next() float64 { return float64(p.units+1-p.base) / p.weight }

// even returns the level at which the parts that it does not fix at their lo or hi add up
// to total with the others. In every step those beyond a bound are fixed at it, of the
// side that weighs more: the level then moves towards the others, and never back.
func even(total float64, parts []part) float64 {
	for i := range parts {
		parts[i].fixed = false
	}
	for {
		left, weight, under, over := total, 0.0, 0.0, 0.0
		for i := range parts {
			p := &parts[i]
			if p.fixed {
				left -= float64(p.units)
				continue
			}
			left -= float64(p.base)
			weight += p.weight
		}
		if weight == 0 {
			return 0
		}
		level := left / weight
		for i := range parts {
			if p := &parts[i]; !p.fixed {
				x := float64(p.base) + level*p.weight
				under += max(float64(p.lo)-x, 0)
				over += max(x-float64(p.hi), 0)
			}
		}
		if under == 0 && over == 0 {
			return level
		}
		for i := range parts {
			p := &parts[i]
			if p.fixed {
				continue
			}
			x := float64(p.base) + level*p.weight
			if under >= over && x < float64(p.lo) {
				p.fixed, p.units = true, p.lo
			} else if over >= under && x > float64(p.hi) {
				p.fixed, p.units = true, p.hi
			}
		}
	}
}
