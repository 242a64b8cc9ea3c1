package proxy

import (
	"net/http"

	"github.com/goodput/goodput/cmd/goodput/internal/config"
)

// A matcher says whether a request is of a class.
type matcher func(*http.Request) bool

func match(config.Match) matcher { return func(*http.Request) bool { return true } }
