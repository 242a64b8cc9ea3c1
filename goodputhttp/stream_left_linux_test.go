package goodputhttp

import (
	"net/http"
	"testing"

	"github.com/goodput/goodput"
)

// A client of HTTP/1 that leaves while its body is unread is noticed by our watch alone: what
// its handler says after that begins nothing.
func TestStreamThatIsLeftUnread(t *testing.T) {
	s, lim := streams(1, func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		w.WriteHeader(http.StatusOK)
	})
	dial(t, start(t, s), post(100)).Close()
	until(t, "it has ended", func() bool { s := lim.Stats(); return s.Arrivals == 1 && s.InUse == 0 })
	outcomes(t, lim, map[goodput.Outcome]uint64{goodput.Abandoned: 1})
}
