package config

// contradictions adds what in one class contradicts itself.
func (r *reader) contradictions(k *classAt) {
	if k.sound {
		k.policy.Check(k.m)
	}
	r.cfg.Classes = append(r.cfg.Classes, *k.Class)
}

// among adds what in several parts of the file contradicts each other.
func (r *reader) among() {
	if n := len(r.classes); n > 0 && r.root.Has("classes") {
		if last := r.classes[n-1].m.Get("match"); last.Present() {
			last.Fail("the last class has a match: what no class takes would have none; add a class without match")
		}
	}
	names := map[string]*classAt{}
	for _, k := range r.classes {
		if before := names[k.Name]; before != nil && k.Name != "" {
			k.node("name").Clash(before.node("name"), "two classes are called %s", k.Name)
		}
		names[k.Name] = k
	}
}
