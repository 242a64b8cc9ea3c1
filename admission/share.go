package admission

// CohortOf returns the cohort of a user, or of a tenant: 1 to Cohorts, from a hash
// that is the same everywhere and does not change between versions. turn rotates
// who is shed first, as by the hour of the day, so that it is not always the same
// people; all instances must use the same.
func CohortOf(user string, turn uint64) int {
	return 1 + int(mix(hashOf(user)^mix(turn+1))%Cohorts)
}

// hashOf is FNV-1a over 64 bits (Fowler, Noll, Vo), finished by mix because its high
// bits alone are poor for short strings.
func hashOf(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mix(h)
}

// mix is the finalizer of MurmurHash3 (Appleby): each bit of x moves half of the bits
// of the result.
func mix(x uint64) uint64 {
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
