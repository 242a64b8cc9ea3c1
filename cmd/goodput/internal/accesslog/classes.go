package accesslog

// classes number the names of classes: a stored record has no room for a name.
type classes struct {
	numbering[uint16]
	rules []Class
}

func newClasses(rules []Class) classes {
	c := classes{newNumbering[uint16](maxClasses), rules}
	for _, r := range rules {
		c.number([]byte(r.Name))
	}
	return c
}

// of returns the class of a row, and gives the row the cost and the size that
// the rule of its path has.
func (c *classes) of(r *row) uint16 {
	if len(c.rules) > 0 && r.path != nil {
		for i := range c.rules {
			rule := &c.rules[i]
			if !fits(rule.Path, r.path) {
				continue
			}
			if rule.Cost > 0 && r.Cost <= 1 {
				r.Cost = rule.Cost
			}
			if rule.Size > 0 && r.Size == 0 {
				r.Size = rule.Size
			}
			if r.class == nil {
				return c.numbers[rule.Name]
			}
			break
		}
	}
	return c.number(r.class)
}

// tenants number the names of tenants likewise.
type tenants struct{ numbering[uint32] }

func newTenants() tenants { return tenants{newNumbering[uint32](maxTenants)} }

// A numbering gives each name a number. The number 0 is "", no name.
type numbering[N uint16 | uint32] struct {
	names   []string
	numbers map[string]N
	most    int  // names; the later ones are taken together as otherClass
	dropped bool // there were more
}

func newNumbering[N uint16 | uint32](most int) numbering[N] {
	return numbering[N]{names: []string{""}, numbers: map[string]N{"": 0}, most: most}
}

// number returns the number of a name, a new one for a new name.
func (k *numbering[N]) number(name []byte) N {
	n, ok := k.numbers[string(name)]
	if ok {
		return n
	}
	s := string(name)
	if len(k.names) > k.most {
		s, k.dropped = otherClass, true
		if n, ok = k.numbers[s]; ok {
			return n
		}
	}
	n = N(len(k.names))
	k.names = append(k.names, s)
	k.numbers[s] = n
	return n
}
