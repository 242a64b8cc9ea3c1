package sim

import (
	"fmt"

	"github.com/goodput/goodput/admission"
)

// A crowd is who stands behind the requests of a class being played, if that is more
// than one tenant whom everybody believes.
type crowd struct {
	tenants, users, keys *namer // nil without
	turn                 uint64
	cohorts              []int // by the index of a user
	guesser              *guesser
	rows                 []*Tally // by the index of a tenant; the last is all the others. Nil without tenants
}

// newCrowd returns nil if there is nothing to draw for a request of class i.
func newCrowd(c *Class, i int, seed uint64) *crowd {
	if c.Tenants.zero() && c.Users.zero() && c.Keys.zero() && c.Told == (Hearsay{}) {
		return nil
	}
	b := &crowd{
		tenants: newNamer(c.Tenants, c.Tenant, nameStream(seed, nameTenants, i)),
		users:   newNamer(c.Users, "user", nameStream(seed, nameUsers, i)),
		keys:    newNamer(c.Keys, "key", nameStream(seed, nameKeys, i)),
		guesser: newGuesser(c.Told, nameStream(seed, nameHearsay, i)),
		turn:    c.Turn,
	}
	if b.users != nil {
		for _, name := range b.users.names {
			b.cohorts = append(b.cohorts, admission.CohortOf(name, c.Turn))
		}
	}
	return b
}

// introduce says who stands behind c, a new request.
func (b *crowd) introduce(c *call) {
	if b.tenants != nil {
		name, i := b.tenants.draw()
		if i < 0 || i >= len(b.rows) {
			i = len(b.rows) - 1
		}
		c.tenant, c.tally = name, b.rows[i]
	}
	if b.users != nil {
		if name, i := b.users.draw(); i < 0 {
			c.cohort = admission.CohortOf(name, b.turn)
		} else {
			c.cohort = b.cohorts[i]
		}
	}
	if b.keys != nil {
		c.key, _ = b.keys.draw()
	}
	if b.guesser != nil {
		b.guesser.guess(c)
	}
}

// validateCrowd returns what is wrong with the names of c and with what is told of it.
func (c *Class) validateCrowd() error {
	if len(c.Tenant) > maxTenantID {
		return fmt.Errorf("tenant has %d bytes: at most %d", len(c.Tenant), maxTenantID)
	}
	for _, ids := range []struct {
		what string
		Ids
	}{{"tenants", c.Tenants}, {"users", c.Users}, {"keys", c.Keys}} {
		if err := ids.validate(); err != nil {
			return fmt.Errorf("%s: %w", ids.what, err)
		}
	}
	switch {
	case !c.Tenants.zero() && c.Tenant == "":
		return fmt.Errorf("tenants have no name: say tenant, and they are called tenant-1, tenant-2 and so on")
	case c.Turn > 0 && c.Users.zero():
		return fmt.Errorf("turn %d is about who of the users is shed first: users are missing", c.Turn)
	}
	if err := c.Told.validate(); err != nil {
		return fmt.Errorf("told: %w", err)
	}
	return nil
}

// maxTenantID is that of a row of admission.Tenants.
const maxTenantID = 128
