package admission

// Start-time fair queueing (Goyal, Vin, Cheng, "Start-time Fair Queuing", SIGCOMM
// 1996): whoever waits has a start tag in virtual time, the least goes first, and
// being served moves it on by cost / weight. Virtual time is the start tag of whom
// was served last, so who was idle starts there and gets nothing for the time
// before. It is fair whatever the speed of the server, which is why it can stand
// below a strict priority and above slots that come and go.
//
// The tag is that of a flow and not of each request: which of its own is next is
// its own affair, and who leaves a queue need not be unwound.

// A node is a flow, or the flow of a group of flows, as one that shares.
type node struct {
	tag    float64 // while it waits its start tag, else its finish tag
	charge float64 // virtual time per unit of cost: 1 / weight
	since  uint64  // when it began to wait; who has waited longer wins a tie
	at     int32   // index in the heap, -1 while it is not in it
}

// A fair shares between nodes.
type fair struct {
	v    float64 // virtual time. Invariant: never falls but in rebase
	heap []*flow // by tag. Invariant: those that wait and may be served
	seq  uint64
}

// tagged returns the start tag that a node which does not wait would have.
func (s *fair) tagged(f *flow) float64 { return max(s.v, f.tag) }

// add puts a node for which somebody begins to wait into the heap.
func (s *fair) add(f *flow) {
	s.seq++
	f.since = s.seq
	s.put(f)
}

// put is add for a node that was in it before.
func (s *fair) put(f *flow) {
	f.tag, f.at = s.tagged(f), int32(len(s.heap))
	s.heap = append(s.heap, f)
	s.up(int(f.at))
}

// drop takes a node out of the heap. Its start tag becomes its finish tag: it has
// been served that far.
func (s *fair) drop(f *flow) {
	i, last := int(f.at), len(s.heap)-1
	s.swap(i, last)
	s.heap[last] = nil
	s.heap = s.heap[:last]
	f.at = -1
	if i < last {
		s.fix(i)
	}
}

// serve accounts for cost granted to a node, which need not wait.
func (s *fair) serve(f *flow, cost int) {
	start := s.tagged(f)
	s.v = start
	f.tag = start + float64(cost)*f.charge
	if f.at >= 0 {
		s.down(int(f.at))
	}
}

// correct accounts for cost more or less than was granted, once that is known.
func (s *fair) correct(f *flow, cost int) {
	f.tag = max(f.tag+float64(cost)*f.charge, 0)
	if f.at >= 0 {
		s.fix(int(f.at))
	}
}

// rebase moves the origin of virtual time, so that a flow has its tag by the new one.
// Tags in the past all mean the same for who does not wait; of those that wait, that only
// corrections have put there, the one that has waited longest is next.
func (f *flow) rebase(v float64) { f.tag = max(f.tag-v, 0) }

// heapify puts the heap in order after rebase.
func (s *fair) heapify() {
	for i := len(s.heap)/2 - 1; i >= 0; i-- {
		s.down(i)
	}
}

// precedes is the order of the heap.
func (a *flow) precedes(b *flow) bool {
	if a.tag != b.tag {
		return a.tag < b.tag
	}
	return a.since < b.since
}

func (s *fair) swap(i, j int) {
	s.heap[i], s.heap[j] = s.heap[j], s.heap[i]
	s.heap[i].at, s.heap[j].at = int32(i), int32(j)
}

func (s *fair) fix(i int) {
	s.down(i)
	s.up(i)
}

func (s *fair) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !s.heap[i].precedes(s.heap[parent]) {
			return
		}
		s.swap(i, parent)
		i = parent
	}
}

func (s *fair) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(s.heap) {
			return
		}
		if r := child + 1; r < len(s.heap) && s.heap[r].precedes(s.heap[child]) {
			child = r
		}
		if !s.heap[child].precedes(s.heap[i]) {
			return
		}
		s.swap(i, child)
		i = child
	}
}

// A flow is those of one tenant and one priority. The flow of the others is a
// group: its requests are in the buckets, which are flows themselves, and share what
// it gets.
type flow struct {
	node
	line     line   // who waits; of a group only the sums
	row      *row   // whose it is
	group    *flow  // of a bucket: the flow of the others; else nil
	buckets  []flow // of a group
	fair     fair   // of a group: between its buckets
	priority Priority
	bucket   int  // number of a bucket
	parked   bool // its row has all that it may have; not in the heap. Invariant: no bucket is parked
	pick     pick
}

// waits reports whether somebody of the flow, or of its buckets, waits.
func (f *flow) waits() bool { return f.line.n > 0 }

// whole is the flow that shares with those of other tenants: itself, or its group.
func (f *flow) whole() *flow {
	if f.group != nil {
		return f.group
	}
	return f
}

// leaf is the flow whose first is next: itself, or a bucket.
func (f *flow) leaf() *flow {
	if f.buckets != nil {
		return f.fair.heap[0]
	}
	return f
}

// A lane is the requests of one priority.
type lane struct {
	fair            // between tenants
	n, cost int     // that wait, and their cost
	sized   float64 // sum of cost x size of those that wait
	parked  int     // of that cost, what waits for the ceiling of its tenant
	aside   []*flow // in which that waits. Invariant: those that are parked
	retries int     // of those that wait
	passed  int     // grants to higher priorities since this one last had its turn
	giving  int     // cost of those that makeRoom has chosen
	credit  float64 // units that its reserve has earned. Invariant: at most carry, or what its first costs
	reserve float64 // part of what is granted

	// As of the last apportion, in units of cost per second.
	offered, avail, served float64
	level                  float64 // per unit of weight; what each over its share gets, else what is sure for each
	weight                 float64 // of those, who share the level
	short                  bool    // somebody asks for more than there is
}

// stuck returns the flows that wait for a ceiling, if they are to be looked at.
func (l *lane) stuck(look bool) []*flow {
	if look {
		return l.aside
	}
	return nil
}
