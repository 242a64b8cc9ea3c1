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
	}
	if err := s.validateTimes(); err != nil {
		return err
	}
	if err := s.validateBounds(); err != nil {
		return err
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

// validateTimes: an amount of time that is negative is a mistake, and never "none". A Stream may
// have a Deadline and a cap: they end it, as they end any request.
func (s *Server) validateTimes() error {
	switch {
	case s.Deadline < 0:
		return fmt.Errorf("Server.Deadline %v is negative: say how long a request may take that brings no deadline, or 0 for ever", s.Deadline)
	case s.DeadlineCap < 0:
		return fmt.Errorf("Server.DeadlineCap %v is negative: say what the longest deadline is, or 0 for any", s.DeadlineCap)
	case s.DeadlineCap > 0 && s.Deadline > s.DeadlineCap:
		return fmt.Errorf("Server.Deadline %v is longer than Server.DeadlineCap %v: no request may have it", s.Deadline, s.DeadlineCap)
	case s.PrereadTimeout < 0:
		return fmt.Errorf("Server.PrereadTimeout %v is negative: say how long a body may take to arrive, or 0 for the default", s.PrereadTimeout)
	case s.SlowClient < 0 && s.SlowClient != PatientClient:
		return fmt.Errorf("Server.SlowClient %v is negative: say how long a client may be waited for, 0 for %v, or PatientClient for ever", s.SlowClient, DefaultSlowClient)
	}
	return nil
}

// validateBounds: what is answered, and how much of it.
func (s *Server) validateBounds() error {
	switch {
	case s.OverloadStatus != 0 && s.OverloadStatus != http.StatusServiceUnavailable && s.OverloadStatus != http.StatusTooManyRequests:
		return fmt.Errorf("Server.OverloadStatus %d is neither 503 nor 429: clients take no other for an overload", s.OverloadStatus)
	case s.MaxBody < 0:
		return fmt.Errorf("Server.MaxBody %d is negative: say how many bytes a body may have, or 0 for any", s.MaxBody)
	case s.MaxPreread < 0 && s.MaxPreread != NoPreread:
		return fmt.Errorf("Server.MaxPreread %d is negative: say how many bytes of a body are read in advance, 0 for %d, or NoPreread", s.MaxPreread, DefaultMaxPreread)
	case s.MaxBuffered < 0:
		return fmt.Errorf("Server.MaxBuffered %d is negative: say how many bytes all bodies may have, or 0 for %d; NoPreread as MaxPreread reads none", s.MaxBuffered, DefaultMaxBuffered)
	case s.MaxUpgraded < 0:
		return fmt.Errorf("Server.MaxUpgraded %d is negative: say how many connections may be upgraded, or 0 for %d", s.MaxUpgraded, DefaultMaxUpgraded)
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
