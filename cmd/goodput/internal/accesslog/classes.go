package accesslog

// classes number the names of classes: a stored record has no room for a name.
// The number 0 is "", no class.
type classes struct {
	rules   []Class
	names   []string
	numbers map[string]uint16
	dropped bool // beyond maxClasses
}

func newClasses(rules []Class) classes {
	c := classes{rules: rules, names: []string{""}, numbers: map[string]uint16{"": 0}}
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

// number returns the number of a name, a new one for a new name.
func (c *classes) number(name []byte) uint16 {
	n, ok := c.numbers[string(name)]
	if ok {
		return n
	}
	s := string(name)
	if len(c.names) > maxClasses {
		s, c.dropped = otherClass, true
		if n, ok = c.numbers[s]; ok {
			return n
		}
	}
	n = uint16(len(c.names))
	c.names = append(c.names, s)
	c.numbers[s] = n
	return n
}

// tenants number the names of tenants likewise.
type tenants struct {
	names   []string
	numbers map[string]uint32
	dropped bool // beyond maxTenants
}

func newTenants() tenants { return tenants{names: []string{""}, numbers: map[string]uint32{"": 0}} }

func (t *tenants) number(name []byte) uint32 {
	n, ok := t.numbers[string(name)]
	if ok {
		return n
	}
	s := string(name)
	if len(t.names) > maxTenants {
		s, t.dropped = otherClass, true
		if n, ok = t.numbers[s]; ok {
			return n
		}
	}
	n = uint32(len(t.names))
	t.names = append(t.names, s)
	t.numbers[s] = n
	return n
}
