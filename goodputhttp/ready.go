package goodputhttp

import (
	"fmt"
	"net/http"
	"time"
)

// ready is what a Server makes of its settings with its first request.
type ready struct {
	further []further
	err     error
}

// Validate says what is wrong with the settings of s, in one sentence. A Server that has
// something wrong panics with it when it serves.
func (s *Server) Validate() error {
	switch {
	case s.Limiter == nil:
		return fmt.Errorf("Server.Limiter is nil: say which limiter a request needs, or use Handler")
	case s.Next == nil:
		return fmt.Errorf("Server.Next is nil: say what serves the requests that are admitted")
	}
	return s.validate()
}

// validate is Validate for what a Server needs that only reads and forwards.
func (s *Server) validate() error {
	switch {
	case len(s.DeadlineHeaders) > maxFurther:
		return fmt.Errorf("Server.DeadlineHeaders has %d headers: up to %d are read", len(s.DeadlineHeaders), maxFurther)
	case s.HopMargin < 0 || s.HopMargin > time.Minute:
		return fmt.Errorf("Server.HopMargin %v is out of range: 1ns to 1m, or 0 for %v", s.HopMargin, HopMargin)
	case s.Forward >= numChoices:
		return fmt.Errorf("Server.Forward %d does not exist: 0 to %d", s.Forward, numChoices-1)
	case s.ForwardOnly && s.Forward == DialectOfCaller:
		return fmt.Errorf("Server.ForwardOnly needs Server.Forward: name the header that takes the place of those of the caller")
	case s.Markers&^allMarkers != 0:
		return fmt.Errorf("Server.Markers %d has unknown bits: EnvoyMarkers and FinagleMarkers are known", s.Markers)
	case s.MaxBody < 0:
		return fmt.Errorf("Server.MaxBody %d is negative: say how many bytes a body may have, or 0 for any", s.MaxBody)
	}
	for i, h := range s.DeadlineHeaders {
		if err := h.Validate(); err != nil {
			return err
		}
		for _, other := range s.DeadlineHeaders[:i] {
			if http.CanonicalHeaderKey(other.Name) == http.CanonicalHeaderKey(h.Name) {
				return fmt.Errorf("deadline header %s is there twice: say in which format it is", http.CanonicalHeaderKey(h.Name))
			}
		}
	}
	return nil
}

// prepare runs once. It is by value of the settings as they are then.
func (s *Server) prepare() {
	if s.ready.err = s.validate(); s.ready.err != nil {
		return
	}
	for _, h := range s.DeadlineHeaders {
		name := http.CanonicalHeaderKey(h.Name)
		s.ready.further = append(s.ready.further, further{name, h.Format, s.books().further.of(name)})
	}
}

// mustBeReady is called by everything that serves, reads or forwards.
func (s *Server) mustBeReady() {
	s.once.Do(s.prepare)
	if s.ready.err != nil {
		panic("goodputhttp: " + s.ready.err.Error())
	}
}

// further returns the headers of s.DeadlineHeaders.
func (s *Server) further() []further {
	s.mustBeReady()
	return s.ready.further
}
