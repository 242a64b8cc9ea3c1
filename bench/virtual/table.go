package virtual

// A Table is a run of everything, as it is written to a file.
type Table struct {
	Go          string            `json:"go"`       // version and architecture
	Versions    map[string]string `json:"versions"` // of the rivals' modules
	Seeds       []uint64          `json:"seeds"`
	Contestants []Words           `json:"contestants"`
	Scenes      []Scene           `json:"scenes"`
	Ceilings    []Ceiling         `json:"ceilings"` // one a scene
	Rows        []Row             `json:"rows"`     // by scene, then by contestant
}

// A Ceiling is what no policy can exceed in a scene, as ratios like Figures.Ratio.
type Ceiling struct {
	Scene string `json:"scene"`

	// NoQueue is what refusing at once reaches in the long run, by Erlang's loss formula: a
	// floor for anybody with a queue. 0 where the load is not a steady one.
	NoQueue float64 `json:"no_queue,omitempty"`

	// Blind is 1 where enough is offered: who does not know how much work a request is
	// serves the mean of it.
	Blind float64 `json:"blind"`

	// SizeAware and Clairvoyant know the work before it is done, and take the short first:
	// the fluid bound, and the optimum of one server as fast as all slots, for the very
	// requests of the first seed. 0 where there is none; Missing says why.
	SizeAware   float64  `json:"size_aware,omitempty"`
	Clairvoyant float64  `json:"clairvoyant,omitempty"`
	Missing     []string `json:"missing,omitempty"`
}
